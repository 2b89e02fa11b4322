package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import java.util.Objects;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * gRPC calls as Mono and Flux (GR-1), over any {@link Channel}.
 *
 * <p>What all kinds keep to:
 *
 * <ul>
 *   <li>Cold: each subscription is a new call with the same request, or a new subscription of its
 *       source, so {@code retry} works. The call starts at subscription.
 *   <li>The {@link Deadline} in the subscriber's Context is read at subscription; what is left of
 *       it becomes the call's deadline and travels as {@code grpc-timeout}, unless the options have
 *       an earlier one. Where it has passed already no call is made.
 *   <li>A cancel of the subscription cancels the call at once, from any thread.
 *   <li>Nothing is asked of the server before downstream asks.
 *   <li>Signals come on the call's executor ({@link CallOptions#withExecutor}, else the channel's).
 *       A message that came in before it was asked for is handed on by the thread that asks.
 *   <li>Interceptors find the subscriber's Context under {@link #CONTEXT}.
 * </ul>
 *
 * <p>Errors: a {@link io.grpc.StatusRuntimeException} with the server's trailers, as from gRPC's
 * own stubs. Where the Context's deadline ended the call it is a {@link
 * dev.timebound.deadline.DeadlineExceededException}, whose cause is the status, if a call was made.
 * What a channel throws when the call starts is passed on as it is.
 *
 * <p>The wait signals of a {@link CallAttempt} are given for each call: the one in the options
 * under {@link CallAttempt#KEY}, else one made for the call. A subscriber waits while it has asked,
 * the call is started and nothing is at hand (BT-11). An attempt in the options is for one
 * subscription; adapters that retry put a new one in.
 */
public final class GrpcCalls {
  /** {@value} bytes: the default of {@link #REQUEST_AHEAD_BYTES}. */
  public static final int DEFAULT_REQUEST_AHEAD_BYTES = 256 * 1024;

  /**
   * How many bytes a stream asks for ahead of its consumer, {@value #DEFAULT_REQUEST_AHEAD_BYTES}
   * by default, at least 1 (BT-42). See {@link #serverStreaming} and {@link #clientStreaming}.
   */
  public static final CallOptions.Key<Integer> REQUEST_AHEAD_BYTES =
      CallOptions.Key.createWithDefault(
          "timebound-request-ahead-bytes", DEFAULT_REQUEST_AHEAD_BYTES);

  /** The subscriber's Context, for interceptors; empty in a call that the bridge did not make. */
  public static final CallOptions.Key<ContextView> CONTEXT =
      CallOptions.Key.createWithDefault("timebound-reactor-context", Context.empty());

  private GrpcCalls() {}

  /**
   * A unary call. The answer is handed on when the server has closed the call with OK; an OK
   * without an answer, or with two, is an {@code INTERNAL} error.
   *
   * @throws IllegalArgumentException where the method is not a unary one
   */
  public static <Q, R> Mono<R> unary(
      Channel channel, MethodDescriptor<Q, R> method, CallOptions options, Q request) {
    requireType(method, MethodType.UNARY);
    return UnaryMono.of(new CallStarter<>(channel, method, options), request);
  }

  /**
   * A server streaming call. Demand is passed on in batches: the first request of downstream asks
   * for 2 messages, and from then on, whenever half of what was asked for is used up and downstream
   * still wants something, as many are asked for as twice the last batch, at most 32 and at most
   * {@link #REQUEST_AHEAD_BYTES} divided by the size of the largest message lately.
   *
   * <p>So no more messages are held or under way ahead of the consumer than {@code max(1, min(32,
   * REQUEST_AHEAD_BYTES / largest))}, and no more bytes than the larger of the setting and one
   * message. Two exceptions, since gRPC counts messages and cannot take a request back: the first 2
   * messages of a stream, and the messages already asked for when one comes that is larger than all
   * before it: those may each be as large. The size that counts fades by 1/32 of the difference
   * with each smaller message. Where the transport tells no sizes (the in-process one) at most 4
   * messages are ahead. What the server has sent and nobody asked for waits in the stream's HTTP/2
   * window and is not counted here (BT-37).
   *
   * @throws IllegalArgumentException where the method is not a server streaming one, or the setting
   *     is below 1
   */
  public static <Q, R> Flux<R> serverStreaming(
      Channel channel, MethodDescriptor<Q, R> method, CallOptions options, Q request) {
    requireType(method, MethodType.SERVER_STREAMING);
    return ServerStreamingFlux.of(
        new CallStarter<>(channel, method, options), request, requestAhead(options));
  }

  /**
   * A client streaming call: what the source gives goes out as the call takes it, and the answer is
   * handed on as that of a unary call.
   *
   * <ul>
   *   <li>The source is subscribed to when the call has started, in the subscriber's Context, once
   *       for each subscription of the Mono: a source that cannot be subscribed to again allows no
   *       {@code retry}. Where the deadline has passed already it is not subscribed to.
   *   <li>It is asked for messages only while the call is ready to take them, in batches bounded as
   *       those of {@link #serverStreaming} are: twice as many as the last time, up to {@link
   *       #REQUEST_AHEAD_BYTES} divided by the size of the largest message lately, at most 32, and
   *       2 at first; at most 4 where the transport tells no sizes. What comes while the call is
   *       not ready is held, and goes to the discard hook where it is never sent.
   *   <li>It may emit on any thread; sends are serialised. Its end is the half close.
   *   <li>It is cancelled as soon as the call ends early: by an answer, by a status, by a cancel or
   *       the deadline. What the server says is what the subscriber gets, also where a message
   *       could not be sent.
   *   <li>Its error cancels the call, and the subscriber gets that error; one that comes after the
   *       call's end is dropped.
   * </ul>
   *
   * <p>The {@link CallAttempt} waits, besides what holds for all calls, only while it is the
   * server's turn: the call takes nothing more, or all has been sent.
   *
   * @throws IllegalArgumentException where the method is not a client streaming one, or the setting
   *     is below 1
   */
  public static <Q, R> Mono<R> clientStreaming(
      Channel channel,
      MethodDescriptor<Q, R> method,
      CallOptions options,
      Publisher<? extends Q> requests) {
    requireType(method, MethodType.CLIENT_STREAMING);
    Objects.requireNonNull(requests, "requests");
    return ClientStreamingMono.of(
        new CallStarter<>(channel, method, options), requests, requestAhead(options));
  }

  private static int requestAhead(CallOptions options) {
    int ahead = options.getOption(REQUEST_AHEAD_BYTES);
    if (ahead < 1) {
      throw new IllegalArgumentException("requestAheadBytes: " + ahead + " (expected: >= 1)");
    }
    return ahead;
  }

  private static void requireType(MethodDescriptor<?, ?> method, MethodType expected) {
    if (method.getType() != expected) {
      throw new IllegalArgumentException(
          "method "
              + method.getFullMethodName()
              + ": "
              + method.getType()
              + " (expected: "
              + expected
              + ")");
    }
  }
}
