package dev.timebound.cas.kit;

import dev.timebound.cas.kit.CasScript.Terms;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * One call being served: when it may go on, and how it ends where its script says so. Everything of
 * a call happens under its turn's lock.
 */
final class CasTurn {
  /** What serves all calls of a server: threads, and what every correct answer asks first. */
  interface House {
    Executor executor();

    void after(Duration delay, Runnable task);

    CasScript scriptFor(CasCallRecord call);

    /** OK, or why the caller is not served at all: no token, an unknown store. */
    Status admits(CasCallRecord call);
  }

  private final House house;
  private final CasCallRecord call;
  private final ServerCallStreamObserver<?> out;
  private @Nullable Terms terms;
  private boolean goneAway;
  private boolean over;

  CasTurn(House house, CasCallRecord call, ServerCallStreamObserver<?> out) {
    this.house = house;
    this.call = call;
    this.out = out;
    out.setOnCancelHandler(this::cancelled);
  }

  CasCallRecord call() {
    return call;
  }

  /** What it is to do; known from {@link #begin} on. */
  Terms terms() {
    Terms known = terms;
    if (known == null) {
      throw new IllegalStateException("not begun: " + call);
    }
    return known;
  }

  synchronized boolean isOver() {
    return over || out.isCancelled();
  }

  private synchronized void cancelled() {
    over = true;
  }

  /** Takes the call's script, waits as it says, and then serves or refuses. */
  void begin(Runnable serve) {
    try {
      terms = house.scriptFor(call).terms();
    } catch (RuntimeException e) {
      fail(Status.INTERNAL.withDescription("script failed: " + e));
      return;
    }
    Runnable go = () -> guarded(() -> served(serve));
    CompletionStage<?> gate = terms.gate;
    Runnable gated =
        gate == null
            ? go
            : () -> gate.whenCompleteAsync((done, failed) -> go.run(), house.executor());
    if (terms.delay.isZero()) {
      gated.run();
    } else {
      house.after(terms.delay, gated);
    }
  }

  private void served(Runnable serve) {
    if (stopsAt(0)) {
      return;
    }
    Status admitted = house.admits(call);
    if (admitted.isOk()) {
      serve.run();
    } else {
      fail(admitted);
    }
  }

  /** Runs it later, under the lock, unless the call is over by then. */
  void later(Duration delay, Runnable task) {
    house.after(delay, () -> guarded(task));
  }

  synchronized void guarded(Runnable task) {
    if (isOver()) {
      return;
    }
    try {
      task.run();
    } catch (RuntimeException e) {
      fail(Status.INTERNAL.withDescription("scripted store failed: " + e));
    }
  }

  /** Ends the call, or tells the client to go away, where the script says so; true: it is over. */
  synchronized boolean stopsAt(int messages) {
    Terms t = terms();
    if (!goneAway && messages >= t.goAwayAfter) {
      goneAway = true;
      call.link().goAway();
    }
    CasEnd end = t.end;
    if (end == null || messages < t.stopAfter || over) {
      return over;
    }
    over = true;
    switch (end.kind()) {
      case STATUS -> out.onError(end.status().asRuntimeException(end.trailers()));
      case RESET -> call.link().resetStream(call, end.code());
      case GO_AWAY -> call.link().goAwayRefusing(call, end.code());
      case CLOSE -> call.link().close();
      case RESET_CONNECTION -> call.link().reset();
      case SILENCE -> {}
      case KEEP_ALIVES -> keepAlive(end.every());
    }
    return true;
  }

  @SuppressWarnings("unchecked") // a read's: the only method that has this end
  private synchronized void keepAlive(Duration every) {
    if (!out.isCancelled()) {
      ((StreamObserver<ReadResponse>) out).onNext(ReadResponse.getDefaultInstance());
      house.after(every, () -> keepAlive(every));
    }
  }

  synchronized void fail(Status status) {
    if (!isOver()) {
      over = true;
      out.onError(status.asRuntimeException());
    }
  }

  synchronized void complete() {
    if (!isOver()) {
      over = true;
      out.onCompleted();
    }
  }
}
