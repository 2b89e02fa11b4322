package dev.timebound.cas;

import dev.timebound.grpc.CallAttempt;
import io.grpc.Status;
import java.time.Duration;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Finds an upload that makes no progress (CAS-3): the server takes nothing more though something is
 * at hand, for gapTimeout; or all is sent and no answer comes, for rpcTimeout. While the source has
 * nothing to give, no time counts. It looks a few times in each limit, so it is that much late.
 */
final class UploadWatch {
  private static final int LOOKS = 8;
  private static final Duration SHORTEST_LOOK = Duration.ofMillis(1);

  private final Shard shard;
  private final RingSettings settings;
  private final CallAttempt attempt;

  /** All requests have been given to the call. */
  private volatile boolean complete;

  private long taken = -1;
  private long since;
  private boolean waits;
  private boolean answer;

  UploadWatch(Shard shard, RingSettings settings, CallAttempt attempt) {
    this.shard = shard;
    this.settings = settings;
    this.attempt = attempt;
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
    return Flux.interval(
            look.compareTo(SHORTEST_LOOK) < 0 ? SHORTEST_LOOK : look, settings.scheduler())
        .onBackpressureDrop()
        .<T>handle(
            (tick, sink) -> {
              if (isStalled()) {
                sink.error(failure());
              }
            })
        .next();
  }

  private boolean isStalled() {
    long now = settings.now();
    boolean waitsNow = attempt.isServersTurn();
    boolean answerNow = complete && waitsNow;
    long takenNow = attempt.messagesSent();
    if (!waitsNow || !waits || takenNow != taken || answerNow != answer) {
      waits = waitsNow;
      answer = answerNow;
      taken = takenNow;
      since = now;
      return false;
    }
    Duration limit = answer ? settings.rpcTimeout() : settings.gapTimeout();
    return !limit.isZero() && now - since >= limit.toNanos();
  }

  private Throwable failure() {
    String what =
        answer
            ? "no answer to an upload within " + settings.rpcTimeout()
            : "took nothing of an upload for " + settings.gapTimeout();
    return Status.DEADLINE_EXCEEDED.withDescription(shard + ": " + what).asRuntimeException();
  }
}
