package dev.timebound.cas;

import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.RemoteExecution.GetCapabilitiesRequest;
import dev.timebound.cas.wire.RemoteExecution.ServerCapabilities;
import dev.timebound.deadline.Deadline;
import dev.timebound.health.Claim;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * What the shards' servers say of themselves: asked once of each, by whoever needs it first, and
 * kept; a failure is not kept, but that a server refused is, for the cooldown (CAS-32).
 */
final class ShardCapabilities {
  private static final MethodDescriptor<GetCapabilitiesRequest, ServerCapabilities> METHOD =
      CapabilitiesGrpc.getGetCapabilitiesMethod();

  /** The question is many callers': where rpcTimeout is off, it must still end. */
  private static final Duration LONGEST = Duration.ofSeconds(30);

  private final RingShards shards;
  private final ShardCalls calls;
  private final Map<Shard, Mono<CasCapabilities>> answers = new ConcurrentHashMap<>();

  /** When a shard's server would not say last. */
  private final Map<Shard, Long> refusedAt = new ConcurrentHashMap<>();

  /** For who does not want to wait. */
  private final Map<Shard, CasCapabilities> known = new ConcurrentHashMap<>();

  ShardCapabilities(RingShards shards, ShardCalls calls) {
    this.shards = shards;
    this.calls = calls;
  }

  /** What is known of the shard by now; null where nothing is. */
  @Nullable CasCapabilities known(Shard shard) {
    return known.get(shard);
  }

  /**
   * The answer, or the one being waited for. The first caller's Context is the call's, without its
   * deadline: that bounds nobody else. A caller that gives up does not end it.
   */
  Mono<CasCapabilities> of(Shard shard) {
    return Mono.defer(() -> answers.computeIfAbsent(shard, this::asking))
        .onErrorMap(ShardStatuses::own);
  }

  private Mono<CasCapabilities> asking(Shard shard) {
    return bounded(shard, Mono.defer(() -> ask(shard)))
        .doOnNext(answer -> known.put(shard, answer))
        .doOnError(
            e -> {
              if (isRefusal(e)) {
                refusedAt.put(shard, calls.settings().now());
              }
              answers.remove(shard);
            })
        .contextWrite(context -> context.delete(Deadline.class))
        .cache();
  }

  /** Where the call's own limit comes first that tells more of why. */
  private Mono<CasCapabilities> bounded(Shard shard, Mono<CasCapabilities> asked) {
    Duration own = calls.settings().rpcTimeout();
    return own.isZero() || own.compareTo(LONGEST) > 0
        ? asked.timeout(LONGEST, Mono.error(() -> late(shard)), calls.settings().scheduler())
        : asked;
  }

  private Mono<CasCapabilities> ask(Shard shard) {
    Claim<Shard> claim = shards.claims(List.of(shard)).next();
    if (claim == null) {
      return Mono.error(left(shard));
    }
    GetCapabilitiesRequest request =
        GetCapabilitiesRequest.newBuilder().setInstanceName(shard.instanceName()).build();
    return calls
        .unary(claim, METHOD, request, 1)
        .map(answer -> CasCapabilities.of(answer.getCacheCapabilities()))
        .onErrorResume(ShardCapabilities::isUnimplemented, e -> Mono.just(CasCapabilities.UNTOLD));
  }

  /** The server does not know the question. */
  static boolean isUnimplemented(Throwable failure) {
    return failure instanceof StatusRuntimeException e
        && e.getStatus().getCode() == Status.Code.UNIMPLEMENTED;
  }

  private static StatusRuntimeException late(Shard shard) {
    return Status.DEADLINE_EXCEEDED
        .withDescription(shard + ": no capabilities within " + LONGEST)
        .asRuntimeException();
  }

  /** The shard is none of the ring's any more: the ring is closed. */
  static StatusRuntimeException left(Shard shard) {
    return Status.UNAVAILABLE.withDescription(shard + ": the ring is closed").asRuntimeException();
  }

  /**
   * Has the question asked, where there is no answer yet, of a shard that serves; waits for
   * nothing.
   */
  void learn(Shard shard, ContextView caller) {
    if (known.containsKey(shard) || hasRefused(shard)) {
      return;
    }
    of(shard).onErrorComplete().contextWrite(context -> context.putAll(caller)).subscribe();
  }

  /**
   * As {@link #of}, for a call that names digests of this function.
   *
   * <p>A server that refuses the question, for whatever reason of its own, may serve the call all
   * the same: then nothing is known of it. Where it does not answer the failure is the call's.
   */
  Mono<CasCapabilities> serving(Shard shard, DigestFunction function) {
    return Mono.defer(() -> hasRefused(shard) ? Mono.just(CasCapabilities.UNTOLD) : of(shard))
        .onErrorResume(ShardCapabilities::isRefusal, e -> Mono.just(CasCapabilities.UNTOLD))
        .doOnNext(answer -> require(shard, answer, function));
  }

  /** Whether it would not say a short while ago: calls do not ask each time. */
  private boolean hasRefused(Shard shard) {
    Long at = refusedAt.get(shard);
    return at != null && calls.settings().now() - at < calls.settings().cooldown().toNanos();
  }

  private static boolean isRefusal(Throwable failure) {
    return ShardStatuses.of(failure) == ShardStatuses.Verdict.FINAL
        || ShardStatuses.of(failure) == ShardStatuses.Verdict.MISSING;
  }

  /**
   * @throws StatusRuntimeException FAILED_PRECONDITION where the server names the functions it
   *     knows, and this is none of them
   */
  private static void require(Shard shard, CasCapabilities answer, DigestFunction function) {
    if (!answer.digestFunctions().isEmpty() && !answer.knows(function)) {
      throw Status.FAILED_PRECONDITION
          .withDescription(
              "digestFunction: "
                  + function
                  + " (expected by "
                  + shard
                  + ": one of "
                  + answer.digestFunctions()
                  + ")")
          .asRuntimeException();
    }
  }
}
