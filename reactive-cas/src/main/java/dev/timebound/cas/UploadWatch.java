package dev.timebound.cas;

import dev.timebound.grpc.CallAttempt;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;

/**
 * Finds an upload that makes no progress (CAS-3): the server takes nothing more though something is
 * at hand, for gapTimeout; or all is sent and no answer comes, for rpcTimeout. While the source has
 * nothing to give, no time counts. One that waits for a stream may do so for rpcTimeout too, and
 * blames nobody (CAS-2c). It looks a few times in each limit, so it is that much late.
 */
final class UploadWatch {
  private static final int LOOKS = 8;
  private static final Duration SHORTEST_LOOK = Duration.ofMillis(1);

  private final Shard shard;
  private final RingSettings settings;
  private final CallAttempt attempt;
  private final CallStage stage;

  /** All requests have been given to the call. */
  private volatile boolean complete;

  private long taken = -1;
  private long since;
  private boolean waits;
  private boolean answer;
  private boolean here;

  UploadWatch(Shard shard, RingSettings settings, CallAttempt attempt, CallStage stage) {
    this.shard = shard;
    this.settings = settings;
    this.attempt = attempt;
    this.stage = stage;
  }

  void complete() {
    complete = true;
  }

  boolean isComplete() {
    return complete;
  }

  /** Fails when it has found one; gives nothing else. */
  <T> Mono<T> stalled() {
    Duration gap = settings.gapTimeout();
    Duration rpc = settings.rpcTimeout();
    Duration shorter = rpc.isZero() || gap.compareTo(rpc) < 0 ? gap : rpc;
    Duration look = shorter.dividedBy(LOOKS);
    long nanos = Math.max(SHORTEST_LOOK.toNanos(), look.toNanos());
    return Mono.create(sink -> new Looks(sink, nanos).plan());
  }

  /** Single timers, one after the other: the cancel of a periodic one may block. */
  private final class Looks implements Runnable {
    private final MonoSink<?> sink;
    private final long nanos;
    private final Disposable.Swap timer = Disposables.swap();

    Looks(MonoSink<?> sink, long nanos) {
      this.sink = sink;
      this.nanos = nanos;
      sink.onDispose(timer);
    }

    void plan() {
      try {
        timer.replace(settings.scheduler().schedule(this, nanos, TimeUnit.NANOSECONDS));
      } catch (RejectedExecutionException shutDown) {
        // no more timers: the caller's deadline still holds
      }
    }

    @Override
    public void run() {
      if (isStalled()) {
        sink.error(failure());
      } else if (!timer.isDisposed()) {
        plan();
      }
    }
  }

  private boolean isStalled() {
    long now = settings.now();
    boolean hereNow = stage.here() != null;
    boolean waitsNow = hereNow || attempt.isServersTurn();
    boolean answerNow = complete && waitsNow;
    long takenNow = attempt.messagesSent();
    if (!waitsNow || !waits || takenNow != taken || answerNow != answer || hereNow != here) {
      waits = waitsNow;
      here = hereNow;
      answer = answerNow;
      taken = takenNow;
      since = now;
      return false;
    }
    Duration limit = answer || here ? settings.rpcTimeout() : settings.gapTimeout();
    return !limit.isZero() && now - since >= limit.toNanos();
  }

  private Throwable failure() {
    String waitsFor = here ? stage.here() : null;
    if (waitsFor != null) {
      return new WaitedHereException(shard.name(), waitsFor, null);
    }
    String what =
        answer
            ? "no answer to an upload within " + settings.rpcTimeout()
            : "took nothing of an upload for " + settings.gapTimeout();
    return Status.DEADLINE_EXCEEDED.withDescription(shard + ": " + what).asRuntimeException();
  }
}
