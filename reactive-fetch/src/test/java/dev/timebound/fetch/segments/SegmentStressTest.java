package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.BOUND;
import static dev.timebound.fetch.segments.Stores.bytes;
import static dev.timebound.fetch.segments.Stores.got;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

@DisplayName("A store on disk, with many at it at once")
class SegmentStressTest {
  private static final Path HANDLES = Path.of("/proc/self/fd");
  private static final Path MAPS = Path.of("/proc/self/maps");

  @TempDir Path directory;

  @AfterEach
  void nothingIsLeft() throws IOException {
    Left.noThread();
    if (Files.isDirectory(HANDLES)) {
      assertThat(openFiles()).as("files open").isZero();
      Left.until(
          () -> {
            System.gc();
            return mapped() == 0;
          });
    }
  }

  /** Of this process, in the store's directory. */
  private long openFiles() throws IOException {
    try (Stream<Path> handles = Files.list(HANDLES)) {
      return handles.filter(this::isOurs).count();
    }
  }

  private boolean isOurs(Path handle) {
    try {
      return Files.readSymbolicLink(handle).startsWith(directory);
    } catch (IOException e) {
      return false; // closed in between
    }
  }

  private long mapped() {
    try (Stream<String> maps = Files.lines(MAPS)) {
      return maps.filter(line -> line.contains(directory.toString())).count();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static ByteBuffer numbered(long base, int size) {
    return ByteBuffer.allocate(8 + size).putLong(0, base);
  }

  @Test
  @DisplayName(
      "FS-1 FS-6 writers, readers and retention: what is read is in order, whole and complete")
  void writersAndReaders() {
    int partitions = 4;
    int writers = 3;
    int each = 400;
    SegmentStore store =
        got(
            SegmentStore.builder(directory)
                .segmentBytes(4096)
                .indexEvery(512)
                .maxOpenFiles(2)
                .maxMapped(3)
                .threads(3)
                .fsync(Fsync.every(Duration.ofMillis(20)))
                .open());
    store.createTopic("t", partitions).block(BOUND);
    Flux<Long> writing =
        Flux.range(0, partitions * writers)
            .flatMap(
                writer -> {
                  Random random = new Random(writer);
                  TopicPartition to = new TopicPartition("t", writer % partitions);
                  return Flux.range(0, each)
                      .concatMap(
                          i -> {
                            int size = 1 + random.nextInt(299);
                            return store.append(to, base -> numbered(base, size), 2, i);
                          });
                },
                partitions * writers);
    long end = 2L * writers * each;
    Mono<Void> reading =
        Flux.range(0, partitions * 2)
            .flatMap(
                reader -> follow(store, new TopicPartition("t", reader % partitions), end),
                partitions * 2)
            .then();
    Mono.when(writing.then().subscribeOn(Schedulers.parallel()), reading).block(BOUND);
    for (int p = 0; p < partitions; p++) {
      TopicPartition partition = new TopicPartition("t", p);
      assertThat(got(store.offsets(partition)).highWatermark()).isEqualTo(end);
      store.deleteBefore(partition, end / 2).block(BOUND);
    }
    Stores.close(store);
    SegmentStore again = got(SegmentStore.builder(directory).open());
    assertThat(got(again.offsets(new TopicPartition("t", 0))).logStart()).isEqualTo(end / 2);
    follow(again, new TopicPartition("t", 0), end).block(BOUND);
    Stores.close(again);
  }

  /** Reads to an offset in several reads, woken by appends; checks all that it is given. */
  private static Mono<Void> follow(SegmentStore store, TopicPartition partition, long end) {
    AtomicLong next = new AtomicLong(-1);
    return Flux.defer(
            () ->
                store.read(
                    partition,
                    new ReadSpec(Math.max(0, next.get()), 3000, true, Isolation.READ_UNCOMMITTED),
                    Deadline.after(BOUND)))
        .doOnNext(
            batch -> {
              if (next.get() >= 0) {
                assertThat(batch.baseOffset()).isEqualTo(next.get());
              }
              assertThat(batch.bytes().getLong()).isEqualTo(batch.baseOffset());
              next.set(batch.nextOffset());
            })
        .repeatWhen(
            ended -> ended.concatMap(n -> n > 0 ? Mono.just(n) : appended(store, partition, next)))
        .takeUntil(batch -> next.get() == end)
        .then();
  }

  private static Mono<Long> appended(
      SegmentStore store, TopicPartition partition, AtomicLong next) {
    return Mono.create(
        sink -> {
          sink.onDispose(store.onAppend(partition, () -> sink.success(1L)).orElseThrow());
          if (got(store.offsets(partition)).highWatermark() > Math.max(0, next.get())) {
            sink.success(1L);
          }
        });
  }

  @Test
  @DisplayName("FS-8 200 partitions are served with few files and mappings")
  void manyPartitions() throws IOException {
    int partitions = 200;
    SegmentStore store =
        got(
            SegmentStore.builder(directory)
                .segmentBytes(64 * 1024)
                .maxOpenFiles(8)
                .maxMapped(16)
                .threads(4)
                .open());
    store.createTopic("t", partitions).block(BOUND);
    for (int round = 0; round < 3; round++) {
      Flux.range(0, partitions)
          .flatMap(
              p -> store.append(new TopicPartition("t", p), base -> bytes(p, 30_000), 1, 1),
              partitions)
          .blockLast(BOUND);
    }
    readAll(store, partitions);
    Assumptions.assumeTrue(Files.isDirectory(HANDLES));
    assertThat(openFiles()).isLessThanOrEqualTo(8 + 1);
    Left.until(
        () -> {
          System.gc();
          return mapped() <= 16;
        });
    Stores.close(store);
    List<Path> left;
    try (Stream<Path> files = Files.walk(directory)) {
      left = files.filter(file -> file.toString().endsWith(".new")).toList();
    }
    assertThat(left).isEmpty();
  }

  /** Each partition's three batches, in one request. */
  private static void readAll(SegmentStore store, int partitions) {
    FetchRequest.Builder request =
        FetchRequest.builder().maxWait(BOUND).maxBytes(Integer.MAX_VALUE);
    for (int p = 0; p < partitions; p++) {
      request.partition(new TopicPartition("t", p), 0);
    }
    try (PartitionFetcher fetcher = PartitionFetcher.builder(store).build()) {
      FetchResponse answer = got(fetcher.fetch(request.minBytes(partitions * 90_000).build()));
      assertThat(answer.sizeInBytes()).isEqualTo(partitions * 90_000L);
      for (int p = 0; p < partitions; p++) {
        for (RecordBatch batch : answer.partition(new TopicPartition("t", p)).batches()) {
          assertThat(batch.bytes()).isEqualTo(bytes(p, 30_000));
        }
      }
    }
  }
}
