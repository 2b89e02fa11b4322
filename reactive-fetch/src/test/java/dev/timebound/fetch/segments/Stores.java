package dev.timebound.fetch.segments;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import reactor.core.publisher.Mono;

/** What the tests of a store on disk do again and again; may block. */
final class Stores {
  /** Only a store that hangs reaches it. */
  static final Duration BOUND = Duration.ofSeconds(60);

  static final TopicPartition ORDERS = new TopicPartition("orders", 0);

  /** A frame of the batches that {@link #append(SegmentStore, int)} makes. */
  static final int FRAME = 140;

  /** Where the first frame of a segment begins. */
  static final int FIRST = 32;

  private Stores() {}

  static <T> T got(Mono<T> mono) {
    return Objects.requireNonNull(mono.block(BOUND));
  }

  /** With one topic, {@code orders}, of one partition; segments of 1000 bytes. */
  static SegmentStore open(SegmentStoreBuilder builder) {
    SegmentStore store = got(builder.open());
    store.createTopic("orders", 1).block(BOUND);
    return store;
  }

  static SegmentStoreBuilder small(Path directory) {
    return SegmentStore.builder(directory).segmentBytes(1000).indexEvery(200).threads(2);
  }

  static void close(SegmentStore store) {
    store.close().block(BOUND);
  }

  /** So many bytes, each of the same value. */
  static ByteBuffer bytes(long value, int size) {
    byte[] bytes = new byte[size];
    java.util.Arrays.fill(bytes, (byte) value);
    return ByteBuffer.wrap(bytes);
  }

  /** Batches of 3 records and 100 bytes that tell their base offset; six are in a segment. */
  static void append(SegmentStore store, int batches) {
    for (int i = 0; i < batches; i++) {
      got(store.append(ORDERS, base -> bytes(base, 100), 3, System.nanoTime() >>> 20));
    }
  }

  static List<RecordBatch> read(SegmentStore store, long offset) {
    return read(store, ORDERS, offset, Isolation.READ_UNCOMMITTED);
  }

  static List<RecordBatch> read(
      SegmentStore store, TopicPartition partition, long offset, Isolation isolation) {
    ReadSpec spec = new ReadSpec(offset, Integer.MAX_VALUE, true, isolation);
    return got(store.read(partition, spec, Deadline.after(BOUND)).collectList());
  }

  static List<Long> bases(List<RecordBatch> batches) {
    return batches.stream().map(RecordBatch::baseOffset).toList();
  }

  /** Base offsets of so many batches of three records. */
  static List<Long> threes(long from, int batches) {
    return Stream.iterate(from, base -> base + 3).limit(batches).toList();
  }

  static Path partition(Path directory) {
    return directory.resolve("topics/orders/0");
  }

  static Path segment(Path directory, long base) {
    return partition(directory).resolve(String.format("%020d.segment", base));
  }

  static Path index(Path directory, long base) {
    return partition(directory).resolve(String.format("%020d.index", base));
  }

  static List<String> files(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  /** The directory as a process that dies now leaves it. */
  static Path killed(Path directory) throws IOException {
    Path copy = directory.resolveSibling(directory.getFileName() + "-killed" + System.nanoTime());
    try (Stream<Path> files = Files.walk(directory)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Files.copy(file, copy.resolve(directory.relativize(file).toString()));
      }
    }
    return copy;
  }

  /**
   * Ten batches: six in the first segment, four in the second; then the process dies: what it
   * leaves.
   */
  static Path tenThenKilled(Path directory) throws IOException {
    SegmentStore store = open(small(directory));
    append(store, 10);
    Path copy = killed(directory);
    close(store);
    return copy;
  }

  /** What a store finds when it is opened; it goes on where that ends. */
  static List<Long> found(SegmentStoreBuilder builder) {
    SegmentStore store = open(builder);
    try {
      List<RecordBatch> batches = read(store, 0);
      assertThat(batches)
          .allSatisfy(batch -> assertThat(batch.bytes()).isEqualTo(bytes(batch.baseOffset(), 100)));
      Offsets offsets = got(store.offsets(ORDERS));
      long end = batches.isEmpty() ? 0 : batches.get(batches.size() - 1).nextOffset();
      assertThat(offsets.highWatermark()).isEqualTo(end);
      append(store, 8);
      assertThat(bases(read(store, end))).isEqualTo(threes(end, 8));
      return bases(batches);
    } finally {
      close(store);
    }
  }

  static void truncate(Path file, long size) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.truncate(size);
    }
  }

  static void scribble(Path file, long at, int... values) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(values.length);
    for (int value : values) {
      bytes.put((byte) value);
    }
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.write(bytes.flip(), at);
    }
  }
}
