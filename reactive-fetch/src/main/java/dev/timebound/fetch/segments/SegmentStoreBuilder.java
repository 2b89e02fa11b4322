package dev.timebound.fetch.segments;

import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/** Settings of a {@link SegmentStore}, each validated as it is set. Not thread-safe. */
public final class SegmentStoreBuilder {
  static final int SEGMENT_BYTES = 64 * 1024 * 1024;
  static final int INDEX_EVERY = 16 * 1024;
  static final int OPEN_FILES = 128;
  static final int MAPPED = 1024;
  static final int WAITING = 10_000;

  final Path directory;
  int segmentBytes = SEGMENT_BYTES;
  int indexEvery = INDEX_EVERY;
  Fsync fsync = Fsync.every(Duration.ofSeconds(1));
  int threads = Math.max(4, Runtime.getRuntime().availableProcessors());
  @Nullable Scheduler scheduler;
  int maxOpenFiles = OPEN_FILES;
  int maxMapped = MAPPED;
  int maxWaiting = WAITING;
  boolean cutAtFault;
  @Nullable MeterRegistry meters;
  Disk disk = Disk.REAL;

  SegmentStoreBuilder(Path directory) {
    this.directory = Objects.requireNonNull(directory, "directory");
  }

  /**
   * Where a segment is full, in bytes, {@code 256..2^30}; a larger batch has one of its own.
   * Retention drops whole segments; each takes this much address space while it is read. Default
   * {@value #SEGMENT_BYTES}.
   */
  public SegmentStoreBuilder segmentBytes(int bytes) {
    segmentBytes = between("segmentBytes", bytes, 256, Frame.MOST_BYTES);
    return this;
  }

  /**
   * One entry of the index for so many bytes of a segment, {@code >= 1}: a read that begins in
   * between passes over that much at most. Default {@value #INDEX_EVERY}.
   */
  public SegmentStoreBuilder indexEvery(int bytes) {
    indexEvery = between("indexEvery", bytes, 1, Frame.MOST_BYTES);
    return this;
  }

  /** When appends are forced to the disk. Default: every second. */
  public SegmentStoreBuilder fsync(Fsync when) {
    fsync = Objects.requireNonNull(when, "fsync");
    return this;
  }

  /**
   * Of the store's own, on which the disk is waited for, {@code >= 1}; they end when idle for a
   * minute. Default: as many as there are processors, at least 4.
   */
  public SegmentStoreBuilder threads(int count) {
    threads = between("threads", count, 1, 1000);
    return this;
  }

  /**
   * Where the disk is waited for instead of threads of the store's own; bounded, may be blocked,
   * and is left open. Default: {@link #threads}.
   */
  public SegmentStoreBuilder scheduler(Scheduler io) {
    scheduler = Objects.requireNonNull(io, "scheduler");
    return this;
  }

  /**
   * Files kept open for appends, {@code >= 1}, besides those that are written to at the moment.
   * Default {@value #OPEN_FILES}.
   */
  public SegmentStoreBuilder maxOpenFiles(int files) {
    maxOpenFiles = between("maxOpenFiles", files, 1, Integer.MAX_VALUE);
    return this;
  }

  /**
   * Segments kept mapped for reads, {@code >= 1}, besides those of which somebody holds a batch.
   * Default {@value #MAPPED}.
   */
  public SegmentStoreBuilder maxMapped(int segments) {
    maxMapped = between("maxMapped", segments, 1, Integer.MAX_VALUE);
    return this;
  }

  /**
   * Appends of one partition that may wait, {@code >= 1}; one more fails at once. Default {@value
   * #WAITING}.
   */
  public SegmentStoreBuilder maxWaiting(int appends) {
    maxWaiting = between("maxWaiting", appends, 1, Integer.MAX_VALUE);
    return this;
  }

  /**
   * Whether a partition ends at the first damage that is found when it is opened, wherever that is:
   * for when there is no other copy. What is damaged, and all that follows, is deleted. Default
   * false: damage before the last segment's end refuses to open.
   */
  public SegmentStoreBuilder cutAtFault(boolean cut) {
    cutAtFault = cut;
    return this;
  }

  /** Where to count, by the directory's name. Default: nowhere. */
  public SegmentStoreBuilder meters(MeterRegistry registry) {
    meters = Objects.requireNonNull(registry, "meters");
    return this;
  }

  SegmentStoreBuilder disk(Disk instead) {
    disk = instead;
    return this;
  }

  /**
   * Opens the directory, which is made where it is not there: what a process that died left
   * unfinished is cut off.
   *
   * @return the store; {@link SegmentStoreException} where the directory is in use, or holds what
   *     the store does not understand
   */
  public Mono<SegmentStore> open() {
    return SegmentStore.open(this);
  }

  static IllegalArgumentException refused(String setting, Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  static int between(String setting, int value, int least, int most) {
    if (value < least || value > most) {
      throw refused(
          setting, value, most == Integer.MAX_VALUE ? ">= " + least : least + ".." + most);
    }
    return value;
  }
}
