package dev.timebound.fetch.segments;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;

/** What a store counts, by its directory. Without a registry it counts nothing. */
abstract class SegmentMeters {
  static final SegmentMeters NONE = new SegmentMeters() {};

  static SegmentMeters of(@Nullable MeterRegistry registry, Path directory) {
    return registry == null ? NONE : new InRegistry(registry, directory);
  }

  /** The disk, timed. */
  Disk timed(Disk disk, Scheduler time) {
    return disk;
  }

  /** An append ended. */
  void appended(boolean written, long nanos) {}

  /** A call to the disk ended. */
  void called(String call, boolean done, long nanos) {}

  /** Bytes that a write gave to the system. */
  void wrote(long bytes) {}

  void gauge(String name, IntSupplier value) {}

  /** The store was closed: what it has now is nothing any more. */
  void end() {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends SegmentMeters {
    private static final String PREFIX = "timebound.fetch.segments.";

    private final MeterRegistry registry;
    private final String directory;
    private final Counter written;
    private final Timer appended;
    private final Timer failed;
    private final ConcurrentHashMap<String, Timer> calls = new ConcurrentHashMap<>();
    private final List<Meter> gauges = new CopyOnWriteArrayList<>();

    InRegistry(MeterRegistry registry, Path directory) {
      this.registry = registry;
      this.directory = directory.toString();
      this.written =
          Counter.builder(PREFIX + "written")
              .description("bytes written to segments")
              .baseUnit("bytes")
              .tag("directory", this.directory)
              .register(registry);
      this.appended = appends("written");
      this.failed = appends("failed");
    }

    private Timer appends(String outcome) {
      return Timer.builder(PREFIX + "appends")
          .description("appends, from their subscription on")
          .tag("directory", directory)
          .tag("outcome", outcome)
          .register(registry);
    }

    @Override
    Disk timed(Disk disk, Scheduler time) {
      return new TimedDisk(disk, time, this);
    }

    @Override
    void appended(boolean done, long nanos) {
      (done ? appended : failed).record(nanos, TimeUnit.NANOSECONDS);
    }

    @Override
    void called(String call, boolean done, long nanos) {
      String outcome = done ? "done" : "failed";
      calls
          .computeIfAbsent(
              call + " " + outcome,
              key ->
                  Timer.builder(PREFIX + "disk")
                      .description("calls that wait for the disk")
                      .tag("directory", directory)
                      .tag("call", call)
                      .tag("outcome", outcome)
                      .register(registry))
          .record(nanos, TimeUnit.NANOSECONDS);
    }

    @Override
    void wrote(long bytes) {
      written.increment(bytes);
    }

    @Override
    void gauge(String name, IntSupplier value) {
      gauges.add(
          Gauge.builder(PREFIX + name, value::getAsInt)
              .tag("directory", directory)
              .register(registry));
    }

    @Override
    void end() {
      gauges.forEach(registry::remove);
    }
  }
}
