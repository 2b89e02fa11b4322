package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.grpc.Context;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A gRPC server's edge (DL-7): the deadline that the client's call came with, which gRPC keeps in
 * {@link io.grpc.Context}, into the Reactor Context. The way out, onto a further call, is {@link
 * GrpcCalls}'s own.
 *
 * <pre>{@code
 * public Mono<Answer> get(Mono<Question> question) {         // a method of a reactor-grpc service
 *   return question.flatMap(this::answer).transform(GrpcServerDeadlines.fromContext());
 * }
 * }</pre>
 */
public final class GrpcServerDeadlines {
  private GrpcServerDeadlines() {}

  /**
   * The deadline of the {@code io.grpc.Context} that is current on this thread; {@link
   * Deadline#none()} where it has none.
   */
  public static Deadline current() {
    io.grpc.Deadline deadline = Context.current().getDeadline();
    return deadline == null
        ? Deadline.none()
        : Deadline.after(Duration.ofNanos(deadline.timeRemaining(TimeUnit.NANOSECONDS)));
  }

  /**
   * Bounds what a server's method answers with by the deadline of its call, as {@link Deadlines#of}
   * does. The deadline is read by this very call, so make it in the method itself, where gRPC's
   * Context is current; the answer may be subscribed on any thread.
   *
   * <p>When it passes, the work upstream is cancelled and the call closes with {@code
   * DEADLINE_EXCEEDED}, and so it does for any other {@link DeadlineExceededException} from
   * upstream: a {@link StatusRuntimeException} whose cause is the exception. The ledger stays here;
   * the client is told the operation and no more.
   */
  public static <T> UnaryOperator<Publisher<T>> fromContext() {
    return bounded(current());
  }

  /**
   * As {@link #fromContext()}, with the most that any call has: one without a deadline has this,
   * and a client can shorten it and never lengthen it.
   *
   * @throws IllegalArgumentException where it is zero or negative
   */
  public static <T> UnaryOperator<Publisher<T>> fromContext(Duration ceiling) {
    if (ceiling.isZero() || ceiling.isNegative()) {
      throw new IllegalArgumentException("ceiling: " + ceiling + " (expected: > 0)");
    }
    return bounded(current().within(ceiling));
  }

  private static <T> UnaryOperator<Publisher<T>> bounded(Deadline deadline) {
    return source -> {
      Publisher<T> bounded = Deadlines.<T>of(deadline).apply(source);
      return bounded instanceof Mono<T> mono
          ? mono.onErrorMap(DeadlineExceededException.class, GrpcServerDeadlines::status)
          : Flux.from(bounded)
              .onErrorMap(DeadlineExceededException.class, GrpcServerDeadlines::status);
    };
  }

  private static StatusRuntimeException status(DeadlineExceededException late) {
    return Status.DEADLINE_EXCEEDED
        .withDescription(late.operation() + ": deadline exceeded")
        .withCause(late)
        .asRuntimeException();
  }
}
