package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.BOUND;
import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.append;
import static dev.timebound.fetch.segments.Stores.bases;
import static dev.timebound.fetch.segments.Stores.bytes;
import static dev.timebound.fetch.segments.Stores.got;
import static dev.timebound.fetch.segments.Stores.open;
import static dev.timebound.fetch.segments.Stores.read;
import static dev.timebound.fetch.segments.Stores.segment;
import static dev.timebound.fetch.segments.Stores.small;
import static dev.timebound.fetch.segments.Stores.threes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;
import reactor.test.scheduler.VirtualTimeScheduler;

@DisplayName("Reads")
@NullUnmarked // fields are set before each test
class SegmentReadsTest {
  @TempDir Path directory;
  private final FaultyDisk disk = new FaultyDisk();
  private SegmentStore store;

  @BeforeEach
  void begin() {
    store = open(small(directory).disk(disk));
  }

  @AfterEach
  void nothingIsLeft() {
    disk.loads.release(1000);
    Stores.close(store);
    Left.noThread();
  }

  private static ReadSpec from(long offset, int maxBytes) {
    return new ReadSpec(offset, maxBytes, true, Isolation.READ_UNCOMMITTED);
  }

  @Nested
  @DisplayName("budget")
  class Budget {
    @Test
    @DisplayName("FE-22 once it has passed no run of batches is begun; what was given counts")
    void between() {
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      // each is more than a run
      for (int i = 0; i < 5; i++) {
        got(store.append(ORDERS, base -> bytes(base, 200_000), 3, 1));
      }
      Deadline budget = Deadline.after(Duration.ofSeconds(1), time);
      List<Long> given = new ArrayList<>();
      store
          .read(ORDERS, from(0, Integer.MAX_VALUE), budget)
          .doOnNext(
              batch -> {
                given.add(batch.baseOffset());
                if (given.size() == 2) {
                  time.advanceTimeBy(Duration.ofSeconds(2));
                }
              })
          .blockLast(BOUND);
      assertThat(given).containsExactly(0L, 3L);
    }

    @Test
    @DisplayName("FE-22 one that passes while the disk is waited for: that run, and no other")
    void stalled() {
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      for (int i = 0; i < 5; i++) {
        got(store.append(ORDERS, base -> bytes(base, 200_000), 3, 1));
      }
      disk.loads.drainPermits();
      Deadline budget = Deadline.after(Duration.ofSeconds(1), time);
      List<RecordBatch> given = new ArrayList<>();
      store.read(ORDERS, from(0, Integer.MAX_VALUE), budget).subscribe(given::add);
      Left.until(() -> disk.loads.hasQueuedThreads());
      int loaded = disk.loaded.get();
      time.advanceTimeBy(Duration.ofSeconds(2));
      disk.loads.release(1000);
      Left.until(() -> given.size() == 1);
      assertThat(got(store.offsetFor(ORDERS, 0, Isolation.READ_UNCOMMITTED)).offset()).isZero();
      assertThat(given).hasSize(1);
      assertThat(disk.loaded.get() - loaded).isLessThanOrEqualTo(2);
    }

    @Test
    @DisplayName("FE-4 none: what is mapped and in memory, at once and on the caller's thread")
    void none() {
      append(store, 4);
      Deadline passed = Deadline.after(Duration.ZERO);
      assertThat(got(store.read(ORDERS, from(0, 1000), passed).collectList()))
          .as("not mapped")
          .isEmpty();
      assertThat(read(store, 0)).hasSize(4);
      disk.threads.clear();
      List<RecordBatch> given = new ArrayList<>();
      store.read(ORDERS, from(4, 1000), passed).subscribe(given::add);
      assertThat(bases(given)).as("mapped, and in memory").containsExactly(3L, 6L, 9L);
      given.clear();
      store.read(ORDERS, from(4, 199), passed).subscribe(given::add);
      assertThat(bases(given)).as("within the limit").containsExactly(3L);
      assertThat(disk.threads).as("the disk was not asked").isEmpty();
    }

    @Test
    @DisplayName("FS-5 a cancel while the disk is waited for is no interrupt, and no error")
    void noInterrupt() {
      append(store, 4);
      disk.loads.drainPermits();
      List<Throwable> errors = new ArrayList<>();
      Disposable reading =
          store
              .read(ORDERS, from(0, 1000), Deadline.after(BOUND))
              .doOnError(errors::add)
              .subscribe(batch -> {}, e -> {});
      Left.until(() -> disk.loads.hasQueuedThreads());
      int before = disk.loaded.get();
      reading.dispose();
      disk.loads.release(1000);
      Left.until(() -> disk.loaded.get() > before);
      assertThat(read(store, 0)).hasSize(4);
      assertThat(errors).isEmpty();
    }

    @Test
    @DisplayName("FE-22 a cancel ends it before the next run")
    void cancel() {
      for (int i = 0; i < 5; i++) {
        got(store.append(ORDERS, base -> bytes(base, 200_000), 3, 1));
      }
      int before = disk.loaded.get();
      assertThat(
              store
                  .read(ORDERS, from(0, Integer.MAX_VALUE), Deadline.after(BOUND))
                  .take(1)
                  .collectList()
                  .block(BOUND))
          .hasSize(1);
      assertThat(disk.loaded.get() - before).isLessThanOrEqualTo(4);
    }

    @Test
    @DisplayName("demand is kept: nobody reads ahead of who asks for one")
    void demand() {
      append(store, 6);
      List<Long> given = new ArrayList<>();
      reactor.test.StepVerifier.create(
              store
                  .read(ORDERS, from(0, Integer.MAX_VALUE), Deadline.after(BOUND))
                  .map(RecordBatch::baseOffset)
                  .doOnNext(given::add),
              0)
          .thenRequest(1)
          .expectNext(0L)
          .thenRequest(2)
          .expectNext(3L, 6L)
          .then(() -> assertThat(given).hasSize(3))
          .thenCancel()
          .verify(BOUND);
    }
  }

  @Nested
  @DisplayName("by offset and by time")
  class Find {
    @ParameterizedTest
    @ValueSource(ints = {1, 150, 300, 100_000})
    @DisplayName("FS-10 each offset is found in its batch, each time in the first that has it")
    void each(int indexEvery) {
      Stores.close(store);
      Random random = new Random(indexEvery);
      store =
          open(
              SegmentStore.builder(directory)
                  .segmentBytes(3000)
                  .indexEvery(indexEvery)
                  .disk(disk)
                  .threads(2));
      List<long[]> batches = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        int records = 1 + random.nextInt(5);
        long time = random.nextInt(1000);
        long base = got(store.append(ORDERS, bytes(i, 1 + random.nextInt(299)), records, time));
        batches.add(new long[] {base, base + records - 1, time});
      }
      for (boolean again : new boolean[] {false, true}) {
        if (again) {
          Stores.close(store);
          store =
              open(
                  SegmentStore.builder(directory)
                      .segmentBytes(3000)
                      .indexEvery(indexEvery)
                      .disk(disk)
                      .threads(2));
        }
        for (long[] batch : batches) {
          for (long offset = batch[0]; offset <= batch[1]; offset++) {
            RecordBatch found =
                got(store.read(ORDERS, from(offset, 0), Deadline.after(BOUND)).next());
            assertThat(found.baseOffset()).isEqualTo(batch[0]);
            assertThat(found.lastOffset()).isEqualTo(batch[1]);
            assertThat(found.maxTimestamp()).isEqualTo(batch[2]);
          }
        }
        for (long time = 0; time <= 1000; time += 7) {
          long wanted = time;
          long first =
              batches.stream()
                  .filter(b -> b[2] >= wanted)
                  .mapToLong(b -> b[0])
                  .findFirst()
                  .orElse(-1);
          assertThat(got(store.offsetFor(ORDERS, time, Isolation.READ_UNCOMMITTED)).offset())
              .isEqualTo(first);
        }
      }
    }

    @Test
    @DisplayName("a time is not looked for before the start, nor past what is stable")
    void bounds() {
      for (int i = 0; i < 10; i++) {
        got(store.append(ORDERS, bytes(i, 100), 3, 1000 - i));
      }
      got(store.appendTransactional(ORDERS, 7, base -> bytes(base, 10), 1, 5000));
      store.deleteBefore(ORDERS, 19).block(BOUND);
      assertThat(got(store.offsetFor(ORDERS, 0, Isolation.READ_UNCOMMITTED)))
          .isEqualTo(new TimestampOffset(19, 994));
      assertThat(got(store.offsetFor(ORDERS, 2000, Isolation.READ_UNCOMMITTED)).offset())
          .isEqualTo(30);
      assertThat(got(store.offsetFor(ORDERS, 2000, Isolation.READ_COMMITTED)))
          .isEqualTo(TimestampOffset.NONE);
    }
  }

  @Nested
  @DisplayName("and retention")
  class Retention {
    @Test
    @DisplayName("FS-7 whole segments are deleted, the last one never; it holds when opened anew")
    void segments() throws IOException {
      append(store, 14);
      store.deleteBefore(ORDERS, 20).block(BOUND);
      assertThat(segment(directory, 0)).doesNotExist();
      assertThat(segment(directory, 18)).exists();
      assertThat(got(store.offsets(ORDERS))).isEqualTo(Offsets.of(20, 42, 42));
      assertThat(bases(read(store, 0))).isEqualTo(threes(18, 8));
      store.deleteBefore(ORDERS, 42).block(BOUND);
      assertThat(read(store, 0)).isEmpty();
      assertThat(Stores.files(Stores.partition(directory)))
          .containsExactly("00000000000000000036.segment", "start");
      store.deleteBefore(ORDERS, 10).block(BOUND);
      assertThatThrownBy(() -> store.deleteBefore(ORDERS, 43).block(BOUND))
          .hasMessage("offset: 43 (expected: <= high watermark 42)");
      Stores.close(store);
      store = open(small(directory).disk(disk));
      assertThat(got(store.offsets(ORDERS))).isEqualTo(Offsets.of(42, 42, 42));
      append(store, 1);
      assertThat(bases(read(store, 0))).containsExactly(42L);
    }

    @Test
    @DisplayName("FS-7 batches that were read from a deleted segment stay valid")
    void underReaders() {
      append(store, 14);
      List<RecordBatch> read = read(store, 0);
      store.deleteBefore(ORDERS, 42).block(BOUND);
      assertThat(segment(directory, 0)).doesNotExist();
      System.gc(); // a mapping goes only when nobody has a batch of it
      assertThat(read)
          .hasSize(14)
          .allSatisfy(batch -> assertThat(batch.bytes()).isEqualTo(bytes(batch.baseOffset(), 100)));
    }

    @Test
    @DisplayName("a read under way goes on where the partition then starts")
    void underWay() {
      append(store, 14);
      List<Long> given = new ArrayList<>();
      reactor.test.StepVerifier.create(
              store
                  .read(ORDERS, from(0, Integer.MAX_VALUE), Deadline.after(BOUND))
                  .map(RecordBatch::baseOffset)
                  .doOnNext(given::add),
              0)
          .thenRequest(6)
          .expectNext(0L, 3L, 6L, 9L, 12L, 15L)
          .then(() -> store.deleteBefore(ORDERS, 36).block(BOUND))
          .thenRequest(100)
          .expectNext(36L, 39L)
          .expectComplete()
          .verify(BOUND);
    }

    @Test
    @DisplayName("aborted transactions before the start are forgotten")
    void aborted() {
      got(store.appendTransactional(ORDERS, 7, base -> bytes(base, 400), 1, 1));
      got(store.endTransaction(ORDERS, 7, false, base -> bytes(base, 400), 1));
      got(store.appendTransactional(ORDERS, 7, base -> bytes(base, 400), 1, 1));
      got(store.endTransaction(ORDERS, 7, false, base -> bytes(base, 400), 1));
      store.deleteBefore(ORDERS, 2).block(BOUND);
      List<RecordBatch> all = read(store, ORDERS, 0, Isolation.READ_COMMITTED);
      assertThat(all.get(0).aborted())
          .containsExactly(new dev.timebound.fetch.AbortedTransaction(7, 2));
    }
  }

  @Nested
  @DisplayName("of damaged files")
  class Damaged {
    @Test
    @DisplayName(
        "a segment that is changed or cut under the store is an error, not an endless walk")
    void changed() throws IOException {
      append(store, 14);
      Stores.close(store);
      store = open(small(directory).disk(disk));
      Stores.scribble(segment(directory, 0), 32 + 140 + 4, 0xff, 0xff, 0xff, 0xff);
      assertThatThrownBy(() -> read(store, 3))
          .isInstanceOf(SegmentStoreException.class)
          .hasMessageContainingAll(segment(directory, 0) + " at 172", "length -1");
      assertThat(bases(read(store, 18))).isEqualTo(threes(18, 8));
      Files.delete(segment(directory, 18));
      Stores.close(store);
      assertThatThrownBy(() -> open(small(directory).disk(disk)))
          .isInstanceOf(SegmentStoreException.class);
    }

    @Test
    @DisplayName("a segment that is gone is an error of its reads")
    void gone() throws IOException {
      append(store, 14);
      Files.delete(segment(directory, 18));
      assertThatThrownBy(() -> read(store, 18))
          .isInstanceOf(SegmentStoreException.class)
          .hasMessageContaining("read at 18 failed");
      assertThat(bases(read(store, 36))).isEqualTo(threes(36, 2));
    }
  }

  @Test
  @DisplayName("FS-5 signals come on the store's threads, and no caller's thread reads a file")
  void threads() {
    append(store, 14);
    List<String> on =
        got(
            Flux.defer(() -> store.read(ORDERS, from(0, 10_000), Deadline.after(BOUND)))
                .map(batch -> Thread.currentThread().getName())
                .subscribeOn(Schedulers.parallel())
                .collectList());
    assertThat(on).hasSize(14).allMatch(name -> name.startsWith("timebound-segments-"));
    assertThat(disk.threads).allMatch(name -> name.startsWith("timebound-segments-"));
  }
}
