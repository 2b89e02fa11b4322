package dev.timebound.cas;

import dev.timebound.cas.CasObservations.Observed;
import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.Claim;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;
import reactor.util.retry.Retry;

/**
 * One read of one blob: what of it has reached the caller, and where it goes when an attempt fails.
 * Its attempts come one after the other, so one thread at a time is here.
 */
class BlobRead {
  private final Reads reads;
  private final Digest digest;
  private final DigestVerifier verifier;
  private final ContextView context;
  private final Deadline caller;
  private final long beganAt;
  private volatile @Nullable Route route;

  private volatile int attempts;
  private boolean renewed;

  /** Of the last attempt. */
  private volatile @Nullable Shard last;

  // of the attempt that failed last
  private @Nullable Shard failedOn;
  private ShardCalls.@Nullable Opened failedWith;

  BlobRead(Reads reads, Digest digest, ContextView context) {
    this.reads = reads;
    this.digest = digest;
    this.verifier = DigestVerifier.of(digest);
    this.context = context;
    this.caller = Deadlines.current(context);
    this.beganAt = reads.settings().now();
  }

  Flux<ByteBuffer> chunks() {
    return new ReadAttemptFlux(this)
        .retryWhen(Retry.from(failures -> failures.concatMap(signal -> after(signal.failure()))))
        .tap(() -> new End());
  }

  private final class End extends CallEnd<ByteBuffer> {
    private final Observed observed = reads.observations().begin(Reads.OPERATION, digest, context);

    End() {
      super(Reads.OPERATION, caller);
    }

    @Override
    public void doOnCancel() {
      Route made = route;
      if (made != null) {
        made.abandon(); // a claim that the caller left
      }
      super.doOnCancel();
    }

    @Override
    void tell(String outcome, @Nullable Throwable failure) {
      reads.meters().readEnded(outcome, reads.settings().now() - beganAt);
      Shard shard = last;
      observed.ended(outcome, failure, attempts, shard == null ? null : shard.name(), caller);
    }
  }

  // --- for its attempts

  Reads reads() {
    return reads;
  }

  Digest digest() {
    return digest;
  }

  Deadline caller() {
    return caller;
  }

  /** Where the next attempt goes; null where the ring has no shard any more. */
  @Nullable Claim<Shard> claim() {
    attempts = attempts + 1; // they come one after the other
    Claim<Shard> claim = route().take();
    last = claim == null ? null : claim.member();
    return claim;
  }

  /** A claim on a shard whose own has ended; null where it has left the ring. */
  @Nullable Claim<Shard> claimAgain(Shard shard) {
    return route().beside(shard);
  }

  /** Whether a failure now is followed by another attempt, as far as bytes are concerned. */
  boolean goesOn() {
    return offset() > 0 && reads.settings().resumeMidStream();
  }

  int candidatesLeft() {
    return route().left();
  }

  int attempts() {
    return attempts;
  }

  private Route route() {
    Route made = route;
    if (made == null) {
      made = new Route(reads.shards(), reads.shards().order(digest), caller, reads.settings());
      route = made;
    }
    return made;
  }

  /** How many bytes have reached the caller. */
  long offset() {
    return digest.sizeBytes() - verifier.remaining();
  }

  /** How many are still to come. */
  long remaining() {
    return verifier.remaining();
  }

  /**
   * Takes a piece that came in, before it is handed on; the whole is checked with its last one.
   *
   * @throws DataLossException where the bytes are not the digest's
   */
  void received(ByteBuffer piece) {
    verifier.update(piece);
    if (verifier.remaining() == 0) {
      verifier.finish();
    }
    route().progress();
  }

  /**
   * The server has ended the stream, and bytes are missing.
   *
   * @return what that is
   */
  DataLossException endedEarly() {
    try {
      verifier.finish();
    } catch (DataLossException tooShort) {
      return tooShort;
    }
    throw new IllegalStateException("the blob is whole");
  }

  /** An attempt is over; its failure goes to the retry. */
  void failed(Shard shard, ShardCalls.@Nullable Opened with) {
    failedOn = shard;
    failedWith = with;
  }

  // --- after an attempt

  private Mono<Boolean> after(Throwable failure) {
    Shard shard = failedOn;
    if (shard == null) {
      return Mono.error(failure);
    }
    ShardCalls.Opened with = failedWith;
    boolean intact = offset() == 0 || reads.settings().resumeMidStream();
    if (intact && !renewed && with != null && with.renew(failure)) {
      renewed = true;
      route().sameAgain(shard);
      return Mono.just(true);
    }
    Verdict verdict = ShardStatuses.of(failure);
    if (verdict == Verdict.MISSING && route().isHome(shard)) {
      return Mono.error(new BlobNotFoundException(digest, shard.name(), failure));
    }
    if (!intact && verdict.retryable) {
      return Mono.error(failure); // CAS-22
    }
    Route.Step step = route().after(shard, failure);
    if (step instanceof Route.Step.End end) {
      return Mono.error(end.failure());
    }
    if (step instanceof Route.Step.Move move) {
      reads.meters().failedOver(shard.name(), move.to().name());
    }
    if (offset() > 0) {
      reads.meters().resumed();
    }
    return step instanceof Route.Step.Again again
        ? Mono.delay(Duration.ofNanos(again.nanos()), reads.settings().scheduler()).thenReturn(true)
        : Mono.just(true);
  }
}
