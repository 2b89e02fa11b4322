package dev.timebound.cas;

import dev.timebound.deadline.DeadlineExceededException;
import io.grpc.StatusRuntimeException;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** What the ring counts. Without a registry it counts nothing. */
abstract class CasMeters {
  static final String OK = "ok";
  static final String DEADLINE = "deadline";

  /** What a caller gave up: neither success nor failure. */
  static final String CANCELLED = "cancelled";

  private static final CasMeters NONE = new CasMeters() {};

  /**
   * @param ring its name, a tag of every meter
   */
  static CasMeters of(@Nullable MeterRegistry registry, String ring) {
    return registry == null ? NONE : new InRegistry(registry, ring);
  }

  /**
   * An attempt to connect has failed.
   *
   * @param where shard and endpoint
   */
  void connectFailed(String where) {}

  /** A call found no free stream on any connection to the shard. */
  void waitsForStream(String shard) {}

  /** The tag for a call that failed. */
  static String outcome(Throwable failure) {
    if (failure instanceof StatusRuntimeException e) {
      return e.getStatus().getCode().name().toLowerCase(Locale.ROOT);
    }
    return failure instanceof DeadlineExceededException ? DEADLINE : "error";
  }

  /** A read has ended: ok, cancelled, deadline, error, or a status's code. */
  void readEnded(String outcome, long nanos) {}

  /** An existence check has ended, as {@link #readEnded}. */
  void lookupEnded(String outcome, long nanos) {}

  /** Bytes were handed to a reader. */
  void read(int bytes) {}

  /** What one shard could not answer is asked of the next. */
  void failedOver(String from, String to) {}

  /** Keys that this shard could not answer for are asked of others, or unknown. */
  void lookupFailed(String shard) {}

  /** A read goes on after bytes have reached its caller. */
  void resumed() {}

  /** Bytes were not those that their digest names. */
  void mismatch() {}

  /** A write has ended: the same outcomes. */
  void writeEnded(String outcome, long nanos) {}

  /** Bytes of an upload were handed to its call, those that are sent again too. */
  void written(int bytes) {}

  /**
   * A call to a shard has ended, one attempt of whatever it was for.
   *
   * @param method its full name
   */
  void called(String shard, String method, String outcome) {}

  /** A batch is sent. */
  void batch(String kind, int blobs) {}

  /** An upload goes on from what its server has. */
  void uploadResumed() {}

  /** The only place that touches Micrometer's types at run time: it is optional. */
  private static final class InRegistry extends CasMeters {
    private final MeterRegistry registry;
    private final String ring;
    private final Counter bytesRead;
    private final Counter bytesWritten;
    private final Counter resumes;
    private final Counter uploadResumes;
    private final Counter mismatches;

    /** A look-up in the registry costs more than all else a small read does here. */
    private final ConcurrentHashMap<String, Timer> reads = new ConcurrentHashMap<>();

    private final ConcurrentHashMap<String, Timer> writes = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<String, DistributionSummary> batches =
        new ConcurrentHashMap<>();

    private final ConcurrentHashMap<String, Timer> lookups = new ConcurrentHashMap<>();

    /** By shard, method and outcome: nothing is made for a call whose like there was before. */
    private final ConcurrentHashMap<
            String, ConcurrentHashMap<String, ConcurrentHashMap<String, Counter>>>
        calls = new ConcurrentHashMap<>();

    InRegistry(MeterRegistry registry, String ring) {
      this.registry = registry;
      this.ring = ring;
      this.bytesRead =
          Counter.builder("timebound.cas.read.bytes")
              .description("bytes handed to readers")
              .baseUnit("bytes")
              .tag("ring", ring)
              .register(registry);
      this.bytesWritten =
          Counter.builder("timebound.cas.write.bytes")
              .description("bytes of uploads handed to their calls")
              .baseUnit("bytes")
              .tag("ring", ring)
              .register(registry);
      this.uploadResumes =
          counter("timebound.cas.write.resumes", "uploads taken up where their server had come to");
      this.resumes = counter("timebound.cas.resumes", "reads taken up after their first byte");
      this.mismatches =
          counter("timebound.cas.mismatches", "blobs whose bytes were not their digest's");
    }

    private Counter counter(String name, String description, String... tags) {
      return Counter.builder(name)
          .description(description)
          .tag("ring", ring)
          .tags(tags)
          .register(registry);
    }

    @Override
    void connectFailed(String where) {
      counter(
              "timebound.cas.connect.failures",
              "attempts to connect to an endpoint that failed",
              "endpoint",
              where)
          .increment();
    }

    @Override
    void waitsForStream(String shard) {
      counter("timebound.cas.stream.waits", "calls that waited for a free stream", "shard", shard)
          .increment();
    }

    @Override
    void readEnded(String outcome, long nanos) {
      record(reads, "timebound.cas.reads", "reads from subscription to end", outcome, nanos);
    }

    @Override
    void lookupEnded(String outcome, long nanos) {
      String description = "existence checks from subscription to end";
      record(lookups, "timebound.cas.lookups", description, outcome, nanos);
    }

    private void record(
        ConcurrentHashMap<String, Timer> known,
        String name,
        String description,
        String outcome,
        long nanos) {
      Timer timer = known.get(outcome);
      if (timer == null) {
        timer =
            known.computeIfAbsent(
                outcome,
                o ->
                    Timer.builder(name)
                        .description(description)
                        .tag("ring", ring)
                        .tag("outcome", o)
                        .register(registry));
      }
      timer.record(nanos, TimeUnit.NANOSECONDS);
    }

    @Override
    void writeEnded(String outcome, long nanos) {
      record(writes, "timebound.cas.writes", "writes from subscription to end", outcome, nanos);
    }

    @Override
    void written(int bytes) {
      bytesWritten.increment(bytes);
    }

    @Override
    void called(String shard, String method, String outcome) {
      var ofShard = calls.get(shard);
      var ofMethod = ofShard == null ? null : ofShard.get(method);
      Counter counter = ofMethod == null ? null : ofMethod.get(outcome);
      (counter == null ? calls(shard, method, outcome) : counter).increment();
    }

    private Counter calls(String shard, String method, String outcome) {
      return calls
          .computeIfAbsent(shard, any -> new ConcurrentHashMap<>())
          .computeIfAbsent(method, any -> new ConcurrentHashMap<>())
          .computeIfAbsent(
              outcome,
              any ->
                  counter(
                      "timebound.cas.calls",
                      "calls to a shard, each attempt",
                      "shard",
                      shard,
                      "operation",
                      operation(method),
                      "outcome",
                      outcome));
    }

    /** As in find-missing-blobs. */
    private static String operation(String method) {
      String bare = method.substring(method.lastIndexOf('/') + 1);
      return bare.replaceAll("(?<=.)([A-Z])", "-$1").toLowerCase(Locale.ROOT);
    }

    @Override
    void batch(String kind, int blobs) {
      batches.computeIfAbsent(kind, this::batches).record(blobs);
    }

    private DistributionSummary batches(String kind) {
      return DistributionSummary.builder("timebound.cas.batches")
          .description("blobs of a batch that was sent")
          .baseUnit("blobs")
          .tag("ring", ring)
          .tag("kind", kind)
          .register(registry);
    }

    @Override
    void uploadResumed() {
      uploadResumes.increment();
    }

    @Override
    void read(int bytes) {
      bytesRead.increment(bytes);
    }

    @Override
    void failedOver(String from, String to) {
      counter("timebound.cas.failovers", "attempts moved to another shard", "from", from, "to", to)
          .increment();
    }

    @Override
    void lookupFailed(String shard) {
      counter(
              "timebound.cas.lookup.failures",
              "existence checks that a shard did not answer",
              "shard",
              shard)
          .increment();
    }

    @Override
    void resumed() {
      resumes.increment();
    }

    @Override
    void mismatch() {
      mismatches.increment();
    }
  }
}
