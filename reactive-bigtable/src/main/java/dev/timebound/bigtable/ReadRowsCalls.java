package dev.timebound.bigtable;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.ReadRowsRequest;
import dev.timebound.grpc.CallAttempt;
import dev.timebound.grpc.GrpcCalls;
import io.github.resilience4j.core.IntervalFunction;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.MethodDescriptor;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

/**
 * What all reads of a client share: how a call is made, the watch, the figures of the settings
 * worked out.
 */
final class ReadRowsCalls {
  private static final MethodDescriptor<ReadRowsRequest, Message> READ_ROWS =
      BigtableGrpc.getReadRowsMethod().toBuilder(
              BigtableGrpc.getReadRowsMethod().getRequestMarshaller(), MessageBytes.INSTANCE)
          .build();

  private final BigtableSettings settings;
  private final Function<String, Channel> channels;
  private final CallOptions options;
  private final Executor delivery;
  private final ReadWatch watch;
  private final BigtableMeters meters;
  private final BigtableObservations observations;
  private final IntervalFunction backoff;
  private final int gapTicks;
  private final int headersTicks;

  /**
   * @param channels the channel for a table's name, its headers attached
   * @param options what every call carries: credentials
   * @param delivery where the calls' signals come, and the reads' timers go
   */
  ReadRowsCalls(
      BigtableSettings settings,
      Function<String, Channel> channels,
      CallOptions options,
      Executor delivery,
      BigtableMeters meters,
      BigtableObservations observations) {
    this.settings = settings;
    this.channels = channels;
    this.options = options;
    this.delivery = delivery;
    this.meters = meters;
    this.observations = observations;
    Duration shortest =
        settings.gapTimeout().compareTo(settings.headersTimeout()) < 0
            ? settings.gapTimeout()
            : settings.headersTimeout();
    this.watch = new ReadWatch(settings.scheduler(), shortest);
    this.gapTicks = watch.ticks(settings.gapTimeout());
    this.headersTicks = watch.ticks(settings.headersTimeout());
    this.backoff = settings.backoff();
  }

  BigtableSettings settings() {
    return settings;
  }

  ReadWatch watch() {
    return watch;
  }

  BigtableMeters meters() {
    return meters;
  }

  BigtableObservations observations() {
    return observations;
  }

  int gapTicks() {
    return gapTicks;
  }

  int headersTicks() {
    return headersTicks;
  }

  /** Runs the task on the delivery executor, behind what it has to do; here where it refuses. */
  void deliver(Runnable task) {
    try {
      delivery.execute(task);
    } catch (RejectedExecutionException shutDown) {
      task.run();
    }
  }

  /** As {@link #deliver}, after that time. */
  Disposable deliverIn(long nanos, Runnable task) {
    return settings.scheduler().schedule(() -> deliver(task), nanos, TimeUnit.NANOSECONDS);
  }

  long now() {
    return settings.scheduler().now(TimeUnit.NANOSECONDS);
  }

  /** The pause before the attempt that follows the {@code attempts}-th. */
  long backoffNanos(int attempts) {
    return TimeUnit.MILLISECONDS.toNanos(backoff.apply(attempts));
  }

  /** The messages of the response as they came, for {@link RowMerger}. */
  Flux<Message> call(ReadRowsRequest request, CallAttempt attempt, AttemptHeaders headers) {
    return GrpcCalls.serverStreaming(
        channels.apply(request.getTableName()),
        READ_ROWS,
        options.withOption(CallAttempt.KEY, attempt).withOption(AttemptHeaders.KEY, headers),
        request);
  }
}
