package dev.timebound.cas;

import dev.timebound.cas.BlobPresence.State;
import dev.timebound.cas.CasObservations.Observed;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/** Existence checks of many blobs. */
final class Lookups {
  static final String OPERATION = "cas.find-missing";

  private final RingShards shards;
  private final ShardCalls calls;
  private final CasMeters meters;
  private final CasObservations observations;

  Lookups(RingShards shards, ShardCalls calls, CasMeters meters, CasObservations observations) {
    this.shards = shards;
    this.calls = calls;
    this.meters = meters;
    this.observations = observations;
  }

  /** Never fails for a shard that does not answer: its blobs are {@link State#UNKNOWN}. */
  Mono<BlobPresence> findMissing(Set<Digest> digests) {
    return check(digests, found -> found);
  }

  /**
   * @param told what is told of it; may throw
   */
  <T> Mono<T> check(Set<Digest> digests, Function<BlobPresence, T> told) {
    Set<Digest> asked = Set.copyOf(digests);
    return Mono.deferContextual(
            context ->
                new Lookup(shards, calls, meters, asked, context)
                    .run()
                    .map(told)
                    .tap(() -> new End<T>(context)))
        .contextWrite(Quiet::of)
        .name(OPERATION);
  }

  private final class End<T> extends CallEnd<T> {
    private final Deadline caller;
    private final Observed observed;
    private final long beganAt = calls.settings().now();

    End(ContextView context) {
      this(context, Deadlines.current(context));
    }

    private End(ContextView context, Deadline caller) {
      super(OPERATION, caller);
      this.caller = caller;
      this.observed = observations.begin(OPERATION, null, context);
    }

    @Override
    void tell(String outcome, @Nullable Throwable failure) {
      meters.lookupEnded(outcome, calls.settings().now() - beganAt);
      observed.ended(outcome, failure, 0, null, caller);
    }
  }
}
