package dev.timebound.cas;

import dev.timebound.cas.RingSettings.AttemptLimit;
import dev.timebound.cas.Tokens.Token;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.GrpcCalls;
import dev.timebound.health.Claim;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * One attempt on one claimed shard: waits for its connection, adds headers and the token, bounds
 * the time, and tells the claim what came of it.
 */
final class ShardCalls {
  static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final RingSettings settings;
  private final Function<ContextView, Metadata> headers;
  private final @Nullable Tokens tokens;
  private final CasMeters meters;

  /**
   * @param headers of a call, from its subscriber's Context
   * @param tokens null where calls carry none
   */
  ShardCalls(
      RingSettings settings,
      Function<ContextView, Metadata> headers,
      @Nullable Tokens tokens,
      CasMeters meters) {
    this.settings = settings;
    this.headers = headers;
    this.tokens = tokens;
    this.meters = meters;
  }

  RingSettings settings() {
    return settings;
  }

  /** Nothing waits for a token any more. */
  void close() {
    if (tokens != null) {
      tokens.close();
    }
  }

  /**
   * What a call is made with.
   *
   * @param token null where calls carry none
   */
  record Opened(Channel channel, CallOptions options, @Nullable Token token) {
    /** Whether the server refused the token, and another try with a new one may help. */
    boolean renew(Throwable failure) {
      if (token == null || ShardStatuses.of(failure) != ShardStatuses.Verdict.UNAUTHENTICATED) {
        return false;
      }
      return token.refused();
    }
  }

  /**
   * The shard's channel, once it is connected and has a free stream, and the options of one call.
   * Not bounded in time. Where there is no token the claim is ended without a word: no shard is to
   * blame.
   *
   * @param stage is told how far the attempt has come
   */
  Mono<Opened> open(Claim<Shard> claim, CallStage stage) {
    return Mono.deferContextual(
        context -> {
          Shard shard = claim.member();
          if (tokens == null) {
            return channel(shard, claim, stage, context)
                .map(channel -> new Opened(channel, options(context, null, stage), null));
          }
          Token present = tokens.present();
          return (present == null ? fetched(tokens, claim, stage, context) : Mono.just(present))
              .flatMap(
                  token ->
                      channel(shard, claim, stage, context)
                          .map(
                              channel ->
                                  new Opened(channel, options(context, token, stage), token)));
        });
  }

  /**
   * Waits for a token, and says so: a source may hang, or die by an Error on a thread of its own,
   * of which nobody is told.
   */
  private Mono<Token> fetched(
      Tokens source, Claim<Shard> claim, CallStage stage, ContextView context) {
    long since = settings.now();
    AtomicBoolean waits = new AtomicBoolean(true);
    Runnable ended =
        () -> {
          if (waits.compareAndSet(true, false)) {
            Deadlines.current(context).charge("waiting for a token", settings.now() - since);
          }
        };
    stage.at(() -> CallStage.TOKEN);
    return source
        .get()
        .doOnNext(
            token -> {
              ended.run();
              stage.goesOn();
            })
        .doOnError(
            e -> {
              ended.run();
              claim.cancelled();
            })
        .doOnCancel(
            () -> {
              if (waits.get()) {
                ended.run();
                claim.cancelled(); // before whoever ran out of time blames the shard
              }
            });
  }

  private Mono<Channel> channel(
      Shard shard, Claim<Shard> claim, CallStage stage, ContextView context) {
    return shard
        .connection()
        .channel(
            claim.isTrial(),
            stage,
            waited ->
                Deadlines.current(context)
                    .charge("waiting for a free stream of " + shard.name(), waited));
  }

  private CallOptions options(ContextView context, @Nullable Token token, CallStage stage) {
    Metadata all = new Metadata();
    all.merge(Objects.requireNonNull(headers.apply(context), "headers: the function gave null"));
    if (token != null) {
      all.discardAll(AUTHORIZATION); // two would contradict each other
      all.put(AUTHORIZATION, "Bearer " + token.value);
    }
    return CallOptions.DEFAULT
        .withOption(EndpointChannel.HEADERS, all)
        .withOption(CallStage.KEY, stage);
  }

  /**
   * One unary call, bounded by rpcTimeout and the caller's share (CAS-3, CAS-3a); once more with a
   * new token where the server refused the present one. Ends the claim.
   *
   * @param candidatesLeft shards that may still be tried, this one included
   */
  <Q, R> Mono<R> unary(
      Claim<Shard> claim, MethodDescriptor<Q, R> method, Q request, int candidatesLeft) {
    return Mono.deferContextual(
        context -> {
          Deadline caller = Deadlines.current(context);
          AttemptLimit attempt = settings.attemptLimit(caller, candidatesLeft);
          Deadline limit = attempt.deadline();
          CallStage stage = new CallStage();
          Mono<R> bounded =
              Mono.from(
                  Deadlines.<R>of(limit, method.getFullMethodName())
                      .apply(sent(claim, method, request, stage, true)));
          return bounded
              .onErrorMap(e -> told(e, caller, attempt, claim.member().name(), stage))
              .doOnSuccess(answer -> succeeded(claim, method))
              .doOnError(e -> failed(claim, method, e))
              .doOnCancel(() -> cancelled(claim, method));
        });
  }

  private <Q, R> Mono<R> sent(
      Claim<Shard> claim,
      MethodDescriptor<Q, R> method,
      Q request,
      CallStage stage,
      boolean mayRenew) {
    return open(claim, stage)
        .flatMap(
            opened -> {
              Mono<R> call = GrpcCalls.unary(opened.channel(), method, opened.options(), request);
              return mayRenew
                  ? call.onErrorResume(
                      opened::renew, refused -> sent(claim, method, request, stage, false))
                  : call;
            });
  }

  /**
   * Whose the end of a limit was (CAS-20a): the caller's where its whole deadline has passed, the
   * shard's where only the attempt's share of it has, and nobody's where the attempt waited for
   * something of this side's.
   */
  private static Throwable told(
      Throwable failure, Deadline caller, AttemptLimit limit, String shard, CallStage stage) {
    boolean late = failure instanceof DeadlineExceededException;
    if (late && limit.deadline() != caller && !caller.isExpired()) {
      String here = stage.here();
      if (here != null) {
        return new WaitedHereException(shard, here, failure);
      }
      return Status.DEADLINE_EXCEEDED
          .withDescription(shard + ": no answer within " + limit.words())
          .withCause(failure)
          .asRuntimeException();
    }
    return told(failure, caller, shard);
  }

  /** The same, of a call that knows of no limit but the caller's. */
  static Throwable told(Throwable failure, Deadline caller, String shard) {
    boolean callersOwn =
        failure instanceof io.grpc.StatusRuntimeException e
            && e.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED
            && caller.remainingNanos() < LEAST_LEFT.toNanos();
    // The server saw the caller's deadline pass a moment before this side did.
    return callersOwn ? new DeadlineExceededException(shard, caller, failure) : failure;
  }

  private static final Duration LEAST_LEFT = Duration.ofMillis(10);

  // --- the end of an attempt: told to its claim, and counted once

  void succeeded(Claim<Shard> claim, MethodDescriptor<?, ?> method) {
    if (claim.succeeded()) {
      meters.called(claim.member().name(), method.getFullMethodName(), CasMeters.OK);
    }
  }

  /** The caller has given up, or what failed is no shard's matter. */
  void cancelled(Claim<Shard> claim, MethodDescriptor<?, ?> method) {
    if (claim.cancelled()) {
      meters.called(claim.member().name(), method.getFullMethodName(), CasMeters.CANCELLED);
    }
  }

  /** Tells the claim of a failure, as {@link #told} words it. */
  void failed(Claim<Shard> claim, MethodDescriptor<?, ?> method, Throwable failure) {
    ShardStatuses.Verdict verdict = ShardStatuses.of(failure);
    boolean first = verdict.kind == null ? claim.cancelled() : claim.failed(verdict.kind, failure);
    if (first) {
      String outcome = CasMeters.outcome(failure);
      meters.called(claim.member().name(), method.getFullMethodName(), outcome);
    }
  }
}
