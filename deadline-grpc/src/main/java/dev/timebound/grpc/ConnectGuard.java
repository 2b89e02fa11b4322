package dev.timebound.grpc;

import io.grpc.ConnectivityState;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

/**
 * Sees that a channel tries to connect and does not get there: a server that accepts and says
 * nothing, packets that are dropped. Keepalive looks at connections that stand and never sees it.
 * (BT-44)
 *
 * <p>By the channel's own changes of state, one timer a channel while it tries.
 */
final class ConnectGuard {
  private final long limit;
  private final Scheduler scheduler;
  private final Consumer<PooledChannel> stuck;

  ConnectGuard(long limitNanos, Scheduler scheduler, Consumer<PooledChannel> stuck) {
    this.limit = limitNanos;
    this.scheduler = scheduler;
    this.stuck = stuck;
  }

  void watch(PooledChannel member) {
    new Watch(member).look();
  }

  private final class Watch {
    private final PooledChannel member;
    private Disposable timer = Disposables.disposed();

    Watch(PooledChannel member) {
      this.member = member;
    }

    private ConnectivityState state() {
      return member.state(false);
    }

    synchronized void look() {
      ConnectivityState now = state();
      if (!isTrying(now)) {
        timer.dispose();
        member.unconnected(false);
      } else if (timer.isDisposed() && !member.isUnconnected()) {
        start();
      }
      if (now != ConnectivityState.SHUTDOWN) {
        try {
          member.channel().notifyWhenStateChanged(now, this::look);
        } catch (UnsupportedOperationException e) {
          timer.dispose(); // a channel of another make that tells nothing
        }
      }
    }

    private void start() {
      try {
        timer = scheduler.schedule(this::passed, limit, TimeUnit.NANOSECONDS);
      } catch (RejectedExecutionException disposed) {
        // the pool goes down
      }
    }

    private void passed() {
      synchronized (this) {
        timer.dispose();
        // What the channel tells goes through its executor, all of whose threads may be held.
        if (!isTrying(state())) {
          return;
        }
        member.unconnected(true);
      }
      stuck.accept(member);
    }
  }

  /** TRANSIENT_FAILURE lies between two attempts, and lasts until one succeeds. */
  private static boolean isTrying(ConnectivityState state) {
    return state == ConnectivityState.CONNECTING || state == ConnectivityState.TRANSIENT_FAILURE;
  }
}
