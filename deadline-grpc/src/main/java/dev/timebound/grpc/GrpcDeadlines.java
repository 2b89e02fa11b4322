package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.grpc.stub.AbstractStub;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Keeps reactor-grpc's stubs, within the Context's deadline and with a cancel that reaches the
 * server. (GR-2)
 *
 * <pre>{@code
 * ReactorGreeterStub stub = ReactorGreeterGrpc.newReactorStub(pool);
 * Mono<Reply> one = GrpcDeadlines.bind(stub, s -> s.greet(request));
 * Mono<Reply> composed = GrpcDeadlines.bind(stub, requestMono, ReactorGreeterStub::greet);
 * Flux<Reply> many = GrpcDeadlines.bindMany(stub, s -> s.list(request));
 * }</pre>
 *
 * <p>What all of them keep to:
 *
 * <ul>
 *   <li>Cold: each subscription asks the function again, with a stub of its own, so {@code retry}
 *       and {@code repeat} work. What the function throws is an error of that subscription.
 *   <li>The {@link Deadline} in the subscriber's Context bounds each call that this stub makes, as
 *       its gRPC deadline and {@code grpc-timeout}, unless the stub's own is earlier; an error it
 *       makes is a {@link DeadlineExceededException}. One that has passed already makes no call.
 *   <li>A cancel of the subscription, by a timeout above say, cancels the calls at once, from any
 *       thread, one that starts at that very moment too.
 *   <li>A request that is handed in beside the stub sees the subscriber's Context, and is cancelled
 *       with the subscription. One that the function closes over does neither: reactor-grpc
 *       subscribes it on its own.
 *   <li>Interceptors find the Context under {@link GrpcCalls#CONTEXT}.
 * </ul>
 *
 * <p>Demand stays reactor-grpc's: a stream asks for 512 messages up front. For the rest there is
 * {@link GrpcCalls}.
 *
 * <p>Any {@link AbstractStub} whose methods give a Mono or a Flux will do. The stub handed in is
 * not changed.
 */
public final class GrpcDeadlines {
  private GrpcDeadlines() {}

  /** A method with one answer. The function gets the bound stub. */
  public static <S extends AbstractStub<S>, R> Mono<R> bind(
      S stub, Function<? super S, ? extends Mono<R>> call) {
    Objects.requireNonNull(call, "call");
    return one(stub, (bound, calls) -> call.apply(bound));
  }

  /** A method with one request and one answer; the request sees the subscriber's Context. */
  public static <S extends AbstractStub<S>, Q, R> Mono<R> bind(
      S stub, Mono<Q> request, BiFunction<? super S, ? super Mono<Q>, ? extends Mono<R>> method) {
    Objects.requireNonNull(request, "request");
    Objects.requireNonNull(method, "method");
    return one(stub, (bound, calls) -> method.apply(bound, calls.request(request)));
  }

  /** A method with many requests and one answer; the requests see the subscriber's Context. */
  public static <S extends AbstractStub<S>, Q, R> Mono<R> bind(
      S stub, Flux<Q> requests, BiFunction<? super S, ? super Flux<Q>, ? extends Mono<R>> method) {
    Objects.requireNonNull(requests, "requests");
    Objects.requireNonNull(method, "method");
    return one(stub, (bound, calls) -> method.apply(bound, calls.request(requests)));
  }

  /** A method with many answers. The function gets the bound stub. */
  public static <S extends AbstractStub<S>, R> Flux<R> bindMany(
      S stub, Function<? super S, ? extends Flux<R>> call) {
    Objects.requireNonNull(call, "call");
    return many(stub, (bound, calls) -> call.apply(bound));
  }

  /** A method with one request and many answers; the request sees the subscriber's Context. */
  public static <S extends AbstractStub<S>, Q, R> Flux<R> bindMany(
      S stub, Mono<Q> request, BiFunction<? super S, ? super Mono<Q>, ? extends Flux<R>> method) {
    Objects.requireNonNull(request, "request");
    Objects.requireNonNull(method, "method");
    return many(stub, (bound, calls) -> method.apply(bound, calls.request(request)));
  }

  /** A method with many requests and many answers; the requests see the subscriber's Context. */
  public static <S extends AbstractStub<S>, Q, R> Flux<R> bindMany(
      S stub, Flux<Q> requests, BiFunction<? super S, ? super Flux<Q>, ? extends Flux<R>> method) {
    Objects.requireNonNull(requests, "requests");
    Objects.requireNonNull(method, "method");
    return many(stub, (bound, calls) -> method.apply(bound, calls.request(requests)));
  }

  private static <S extends AbstractStub<S>, R> Mono<R> one(
      S stub, BiFunction<S, BoundCalls, Mono<R>> call) {
    Objects.requireNonNull(stub, "stub");
    return Deadlines.defer(
        stub.getClass().getSimpleName(),
        deadline ->
            Mono.deferContextual(
                context -> {
                  BoundCalls calls = new BoundCalls(context, deadline);
                  return call.apply(stub.withInterceptors(calls), calls)
                      .doOnCancel(calls::cancel)
                      .onErrorMap(calls::failure);
                }));
  }

  private static <S extends AbstractStub<S>, R> Flux<R> many(
      S stub, BiFunction<S, BoundCalls, Flux<R>> call) {
    Objects.requireNonNull(stub, "stub");
    return Deadlines.deferMany(
        stub.getClass().getSimpleName(),
        deadline ->
            Flux.deferContextual(
                context -> {
                  BoundCalls calls = new BoundCalls(context, deadline);
                  return call.apply(stub.withInterceptors(calls), calls)
                      .doOnCancel(calls::cancel)
                      .onErrorMap(calls::failure);
                }));
  }
}
