package dev.timebound.pg;

import dev.timebound.health.FailureKind;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * What a read has in its hands, a reader's connection first and the writer's after it, and how that
 * is given back: by whether its statements have ended, run, or wait for the proof. (PG-15, PG-16,
 * PG-19) Thread-safe.
 */
final class Holding implements BoundedResult.Bound {
  static final String ENDED = "the read-only transaction has ended";

  private final Router router;
  private final boolean maintenance;
  private final Running running = new Running();
  private final Gate gate = new Gate();

  // guarded by this
  private @Nullable Checkout checkout;
  private @Nullable WriterLease writer;
  private boolean proving;
  private @Nullable RouteReason reason;

  Holding(Router router, boolean maintenance) {
    this.router = router;
    this.maintenance = maintenance;
  }

  /** The statements under way where it is now. */
  Running running() {
    return running;
  }

  /** What the read sends by its subscription; an error where the read has ended. */
  <T> Flux<T> sending(Supplier<? extends Publisher<T>> what) {
    return gate.sending(gate.turn(), what, Mono.error(() -> new IllegalStateException(ENDED)));
  }

  /** The same of rows whose statement is sent when they are asked for. */
  @Override
  public <T> Flux<T> apply(Publisher<T> rows) {
    return sending(() -> rows);
  }

  void take(Checkout c) {
    synchronized (this) {
      if (!gate.isOver()) {
        checkout = c;
        return;
      }
    }
    c.end(false, false);
  }

  void take(WriterLease lease) {
    synchronized (this) {
      if (!gate.isOver()) {
        writer = lease;
        return;
      }
    }
    lease.release();
  }

  /** A BEGIN is under way, or no longer. */
  synchronized void proving(boolean on) {
    proving = on;
  }

  /** It is where it stays. */
  synchronized void proved(RouteReason why) {
    proving = false;
    reason = why;
  }

  /** The reader failed under it: a broken connection tells of its reader. */
  void failed(Throwable e) {
    if (SqlStates.isConnection(e)) {
      Checkout c;
      synchronized (this) {
        c = checkout;
      }
      if (c != null) {
        c.fail(FailureKind.CONNECTION, e, CloseReason.ERROR);
      }
    }
  }

  /** The reader goes back, for the writer. */
  void letGo() {
    Checkout c;
    boolean mayRun;
    boolean inProof;
    synchronized (this) {
      c = checkout;
      checkout = null;
      mayRun = running.any();
      running.forget();
      inProof = proving;
      proving = false;
    }
    if (c != null) {
      if (inProof) {
        c.drop(CloseReason.OPEN_TRANSACTION);
      } else {
        c.end(false, mayRun);
      }
    }
  }

  /**
   * All goes back, and the route is counted; what that takes runs detached.
   *
   * @return false where it had ended before
   */
  boolean end(boolean completed) {
    return gate.end(() -> giveBack(completed));
  }

  private void giveBack(boolean completed) {
    Checkout c;
    WriterLease w;
    boolean inProof;
    boolean mayRun;
    RouteReason why;
    synchronized (this) {
      c = checkout;
      w = writer;
      inProof = proving;
      mayRun = running.any();
      why = reason;
    }
    if (c != null) {
      if (inProof) {
        c.drop(CloseReason.OPEN_TRANSACTION);
      } else if (mayRun && !completed && maintenance) {
        c.drop(CloseReason.ABANDONED);
      } else {
        c.end(completed || !mayRun, mayRun);
      }
    }
    if (w != null) {
      if (mayRun || inProof) {
        w.cancelled();
      } else {
        w.release();
      }
    }
    if (why != null) {
      router.routed(w == null ? RouteTarget.READER : RouteTarget.WRITER, why);
    }
  }
}
