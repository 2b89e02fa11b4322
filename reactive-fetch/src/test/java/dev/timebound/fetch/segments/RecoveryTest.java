package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.append;
import static dev.timebound.fetch.segments.Stores.bases;
import static dev.timebound.fetch.segments.Stores.close;
import static dev.timebound.fetch.segments.Stores.got;
import static dev.timebound.fetch.segments.Stores.index;
import static dev.timebound.fetch.segments.Stores.killed;
import static dev.timebound.fetch.segments.Stores.open;
import static dev.timebound.fetch.segments.Stores.partition;
import static dev.timebound.fetch.segments.Stores.read;
import static dev.timebound.fetch.segments.Stores.scribble;
import static dev.timebound.fetch.segments.Stores.segment;
import static dev.timebound.fetch.segments.Stores.small;
import static dev.timebound.fetch.segments.Stores.threes;
import static dev.timebound.fetch.segments.Stores.truncate;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.AbortedTransaction;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.RecordBatch;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.Disposable;

@DisplayName("What is found when a store is opened")
class RecoveryTest {
  /** A frame of the batches that {@link Stores#append} makes. */
  private static final int FRAME = 140;

  private static final int FIRST = 32;

  /** Another process, which is killed as it has the directory open. */
  static final class Opens {
    public static void main(String[] directory) throws InterruptedException {
      append(open(small(Path.of(directory[0]))), 4);
      System.out.println("open");
      Thread.sleep(Stores.BOUND.toMillis());
    }
  }

  @TempDir Path root;
  private Path directory;

  @BeforeEach
  void directory() {
    directory = root.resolve("log");
  }

  @AfterEach
  void nothingIsLeft() {
    Left.noThread();
  }

  /** Ten batches: six in the first segment, four in the second; then the process dies. */
  private Path tenThenKilled() throws IOException {
    SegmentStore store = open(small(directory));
    append(store, 10);
    Path copy = killed(directory);
    close(store);
    return copy;
  }

  private static List<Long> found(SegmentStoreBuilder builder) {
    SegmentStore store = open(builder);
    try {
      List<RecordBatch> batches = read(store, 0);
      assertThat(batches)
          .allSatisfy(
              batch -> assertThat(batch.bytes()).isEqualTo(Stores.bytes(batch.baseOffset(), 100)));
      Offsets offsets = got(store.offsets(ORDERS));
      long end = batches.isEmpty() ? 0 : batches.get(batches.size() - 1).nextOffset();
      assertThat(offsets.highWatermark()).isEqualTo(end);
      // and it goes on where it ends
      append(store, 8);
      assertThat(bases(read(store, end))).isEqualTo(threes(end, 8));
      return bases(batches);
    } finally {
      close(store);
    }
  }

  @Nested
  @DisplayName("of a process that died")
  class Killed {
    @Test
    @DisplayName("FS-1 all that had returned is there, and it goes on")
    void all() throws IOException {
      assertThat(found(small(tenThenKilled()))).isEqualTo(threes(0, 10));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 39, 40, 41, 100, 139})
    @DisplayName("FS-2 a batch that was half written is cut")
    void torn(int written) throws IOException {
      Path copy = tenThenKilled();
      truncate(segment(copy, 18), FIRST + 3 * FRAME + written);
      assertThat(found(small(copy))).isEqualTo(threes(0, 9));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 5, 12, 17, 21, 25, 33, 41, 138})
    @DisplayName("FS-2 a batch that is not as it was written is cut, wherever it differs")
    void scribbled(int at) throws IOException {
      Path copy = tenThenKilled();
      scribble(segment(copy, 18), FIRST + 3 * FRAME + at, 0x5a);
      assertThat(found(small(copy))).isEqualTo(threes(0, 9));
    }

    @Test
    @DisplayName("FS-2 what was being written after the last batch is cut, however it looks")
    void garbage() throws IOException {
      Path copy = tenThenKilled();
      scribble(
          segment(copy, 18), FIRST + 4 * FRAME, 1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 30);
      assertThat(found(small(copy))).isEqualTo(threes(0, 10));
    }

    @Test
    @DisplayName("FS-2 what was cut does not come back behind what is appended next")
    void cut() throws IOException {
      Path copy = tenThenKilled();
      scribble(segment(copy, 18), FIRST + FRAME + 60, 0x5a);
      SegmentStore store = open(small(copy));
      assertThat(got(store.offsets(ORDERS)).highWatermark()).isEqualTo(21);
      append(store, 1);
      Path again = killed(copy);
      close(store);
      assertThat(found(small(again))).isEqualTo(threes(0, 8));
    }

    @Test
    @DisplayName("FS-2 as the first batch of a segment was written")
    void firstOfSegment() throws IOException {
      Path copy = tenThenKilled();
      truncate(segment(copy, 18), FIRST + 50);
      assertThat(found(small(copy))).isEqualTo(threes(0, 6));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 7, 31})
    @DisplayName("FS-2 as a segment was made")
    void madeSegment(int written) throws IOException {
      Path copy = tenThenKilled();
      truncate(segment(copy, 18), written);
      assertThat(found(small(copy))).isEqualTo(threes(0, 6));
    }

    @Test
    @DisplayName("FS-2 as a segment was made, before the one before it was sealed")
    void unsealed() throws IOException {
      Path copy = tenThenKilled();
      truncate(segment(copy, 18), FIRST);
      Files.delete(index(copy, 0));
      scribble(segment(copy, 0), FIRST + 7 * FRAME, 0); // the hole at its end is still there
      assertThat(found(small(copy))).isEqualTo(threes(0, 6));
    }

    @Test
    @DisplayName("FS-2 as a segment was made, and the end of the one before it was lost")
    void lostEnd() throws IOException {
      Path copy = tenThenKilled();
      truncate(segment(copy, 18), FIRST);
      Files.delete(index(copy, 0));
      truncate(segment(copy, 0), FIRST + 4 * FRAME + 20);
      assertThat(found(small(copy))).isEqualTo(threes(0, 4));
    }

    @Test
    @DisplayName("as a topic was made: all of its partitions are there, or none")
    void topic() throws IOException {
      Path copy = tenThenKilled();
      Files.createDirectories(copy.resolve("topics/+half/0"));
      SegmentStore store = open(small(copy));
      assertThat(store.partitions()).containsExactly(ORDERS);
      close(store);
      assertThat(Stores.files(copy.resolve("topics"))).containsExactly("orders");
    }

    @Test
    @DisplayName("FS-7 what was lost below the start does not come back under other records")
    void belowStart() throws IOException {
      SegmentStore store = open(small(directory));
      append(store, 10);
      store.deleteBefore(ORDERS, 27).block(Stores.BOUND);
      Path copy = killed(directory);
      close(store);
      truncate(segment(copy, 18), FIRST + FRAME);
      store = open(small(copy));
      assertThat(got(store.offsets(ORDERS))).isEqualTo(Offsets.of(27, 27, 27));
      append(store, 1);
      assertThat(bases(read(store, 0))).containsExactly(27L);
      close(store);
    }
  }

  @Nested
  @DisplayName("indexes")
  class Indexes {
    private Path closed() {
      SegmentStore store = open(small(directory));
      append(store, 16);
      close(store);
      return directory;
    }

    @Test
    @DisplayName("a sealed segment whose index is whole is not read when opened")
    void trusted() throws IOException {
      Path closed = closed();
      // of no batch's header, so that only a checksum would tell
      scribble(segment(closed, 0), FIRST + 60, 0x5a);
      SegmentStore store = open(small(closed));
      assertThat(got(store.offsets(ORDERS)).highWatermark()).isEqualTo(48);
      close(store);
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 9, 14, 20, 30, 41, 49, 58, 77})
    @DisplayName("FS-10 one that is damaged is made anew")
    void damaged(int at) throws IOException {
      Path closed = closed();
      scribble(index(closed, 0), at, 0x5a);
      scribble(index(closed, 18), at, 0x5a);
      scribble(index(closed, 36), at, 0x5a);
      assertThat(found(small(closed))).isEqualTo(threes(0, 16));
    }

    @Test
    @DisplayName("FS-10 one that speaks for less than there is has no say")
    void stale() throws IOException {
      Path closed = closed();
      byte[] before = Files.readAllBytes(index(closed, 36));
      SegmentStore store = open(small(closed));
      append(store, 2);
      Path copy = killed(closed);
      close(store);
      Files.write(index(copy, 36), before); // its deletion was not yet on the disk
      assertThat(found(small(copy))).isEqualTo(threes(0, 18));
    }

    @Test
    @DisplayName("FS-10 one that is missing or empty is made anew")
    void missing() throws IOException {
      Path closed = closed();
      Files.delete(index(closed, 0));
      truncate(index(closed, 18), 0);
      Files.delete(index(closed, 36));
      assertThat(found(small(closed))).isEqualTo(threes(0, 16));
    }

    @Test
    @DisplayName("FS-10 every offset is found, whatever the index says of its batch's neighbours")
    void everyOffset() throws IOException {
      Path closed = closed();
      for (boolean withIndex : new boolean[] {true, false}) {
        if (!withIndex) {
          for (long base : new long[] {0, 18, 36}) {
            Files.delete(index(closed, base));
          }
        }
        SegmentStore store = open(small(closed));
        for (long offset = 0; offset < 48; offset++) {
          assertThat(read(store, offset).get(0).baseOffset()).isEqualTo(offset / 3 * 3);
        }
        close(store);
      }
    }
  }

  @Nested
  @DisplayName("what is not understood is refused, and named")
  class Refused {
    private void refused(Path copy, String... named) {
      assertThatThrownBy(() -> close(got(small(copy).open())))
          .isInstanceOf(SegmentStoreException.class)
          .hasMessageContainingAll(named);
    }

    @Test
    @DisplayName("FS-2 damage in a sealed segment: file, position, value, expectation")
    void sealed() throws IOException {
      Path copy = tenThenKilled();
      Files.delete(index(copy, 0));
      scribble(segment(copy, 0), FIRST + 2 * FRAME + 16, 0, 0, 0, 0);
      refused(
          copy,
          segment(copy, 0) + " at " + (FIRST + 2 * FRAME),
          "records 0 (expected: >= 1)",
          "the batch 6 is missing");
      assertThat(found(small(copy).cutAtFault(true))).isEqualTo(threes(0, 2));
    }

    @Test
    @DisplayName("FS-2 a segment that is missing")
    void gap() throws IOException {
      SegmentStore store = open(small(directory));
      append(store, 16);
      Path copy = killed(directory);
      close(store);
      Files.delete(segment(copy, 18));
      refused(copy, segment(copy, 36) + " at 16: base offset 36", "18, where the one before ends");
      assertThat(found(small(copy).cutAtFault(true))).isEqualTo(threes(0, 6));
    }

    @Test
    @DisplayName("FS-2 a segment that is none, of another version, or under another's name")
    void header() throws IOException {
      Path copy = tenThenKilled();
      scribble(segment(copy, 18), 0, 'x');
      refused(copy, segment(copy, 18) + " at 0: magic 78", "(expected: 54425345474d4e54)");
      scribble(segment(copy, 18), 0, 'T');
      scribble(segment(copy, 18), 11, 2);
      refused(copy, segment(copy, 18) + " at 8: version 2 (expected: 1)");
      scribble(segment(copy, 18), 11, 1);
      scribble(segment(copy, 18), 23, 19);
      refused(copy, segment(copy, 18) + " at 16: base offset 19 (expected: 18)");
    }

    @Test
    @DisplayName("FS-2 files that are not the store's")
    void foreign() throws IOException {
      Files.createDirectories(directory);
      Files.writeString(directory.resolve("letters.txt"), "dear");
      refused(directory, directory.resolve("letters.txt").toString(), "an empty directory");
      assertThat(Stores.files(directory)).containsExactly("letters.txt");

      Path copy = tenThenKilled0("other");
      Files.writeString(partition(copy).resolve("notes"), "");
      refused(copy, partition(copy).resolve("notes").toString(), "segments, their indexes");
      Files.delete(partition(copy).resolve("notes"));
      Files.createDirectory(copy.resolve("topics/orders/first"));
      refused(copy, copy.resolve("topics/orders/first").toString(), "partitions' directories");
      Files.delete(copy.resolve("topics/orders/first"));
      Files.writeString(copy.resolve("topics/file"), "");
      refused(copy, copy.resolve("topics/file").toString(), "a topic's directory");
    }

    private Path tenThenKilled0(String name) throws IOException {
      Path elsewhere = root.resolve(name);
      SegmentStore store = open(small(elsewhere));
      append(store, 10);
      Path copy = killed(elsewhere);
      close(store);
      return copy;
    }

    @Test
    @DisplayName("FS-2 another version of the directory, and a damaged start")
    void versions() throws IOException {
      SegmentStore store = open(small(directory));
      append(store, 10);
      store.deleteBefore(ORDERS, 7).block(Stores.BOUND);
      close(store);
      scribble(partition(directory).resolve("start"), 15, 8);
      refused(directory, partition(directory).resolve("start") + " at 16: crc32c");
      Files.writeString(directory.resolve("timebound-segments"), "version 2\n");
      refused(
          directory,
          directory.resolve("timebound-segments") + " at 0: 'version 2' (expected: 'version 1')");
    }

    @Test
    @DisplayName("FS-3 not once an opening that nobody waits for any more has come to its end")
    void cancelled() {
      SegmentStore store = open(small(directory));
      append(store, 10);
      close(store);
      FaultyDisk disk = new FaultyDisk();
      disk.maps.acquireUninterruptibly();
      Disposable opening = small(directory).disk(disk).open().subscribe();
      Left.until(() -> disk.maps.hasQueuedThreads());
      opening.dispose();
      refused(directory, directory.resolve("lock") + ": locked");
      disk.maps.release();
      Left.noThread();
      assertThat(found(small(directory))).isEqualTo(threes(0, 10));
    }

    @Test
    @DisplayName("FS-3 a directory that another process has open")
    void lockedByAnother() throws Exception {
      Process other =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-cp",
                  System.getProperty("java.class.path"),
                  Opens.class.getName(),
                  directory.toString())
              .redirectErrorStream(true)
              .start();
      try (var says = other.inputReader()) {
        assertThat(says.lines().anyMatch("open"::equals)).isTrue();
        refused(directory, directory.resolve("lock") + ": locked");
      } finally {
        other.destroyForcibly().waitFor();
      }
      assertThat(found(small(directory))).isEqualTo(threes(0, 4));
    }

    @Test
    @DisplayName("FS-3 a directory that is open already, and not once it was closed")
    void locked() {
      SegmentStore store = open(small(directory));
      refused(directory, directory.resolve("lock") + ": locked");
      append(store, 1);
      close(store);
      assertThat(found(small(directory))).isEqualTo(threes(0, 1));
    }
  }

  @Nested
  @DisplayName("transactions")
  class Transactional {
    /** Producer 7's is aborted, 8's is open; with filling that takes it over several segments. */
    private void write(SegmentStore store) {
      got(store.appendTransactional(ORDERS, 7, base -> Stores.bytes(base, 400), 1, 1));
      got(store.appendTransactional(ORDERS, 8, base -> Stores.bytes(base, 400), 1, 1));
      got(store.appendTransactional(ORDERS, 7, base -> Stores.bytes(base, 400), 1, 1));
      got(store.endTransaction(ORDERS, 7, false, base -> ByteBuffer.allocate(10), 1));
      got(store.append(ORDERS, base -> Stores.bytes(base, 400), 1, 1));
    }

    private void check(SegmentStore store) {
      assertThat(got(store.offsets(ORDERS))).isEqualTo(Offsets.of(0, 5, 1));
      assertThat(bases(read(store, ORDERS, 0, Isolation.READ_COMMITTED))).containsExactly(0L);
      got(store.endTransaction(ORDERS, 8, true, base -> ByteBuffer.allocate(10), 1));
      List<RecordBatch> all = read(store, ORDERS, 0, Isolation.READ_COMMITTED);
      assertThat(bases(all)).containsExactly(0L, 1L, 2L, 3L, 4L, 5L);
      AbortedTransaction seven = new AbortedTransaction(7, 0);
      assertThat(all.get(0).aborted()).containsExactly(seven);
      assertThat(all.get(2).aborted()).containsExactly(seven);
      assertThat(all.get(4).aborted()).isEmpty();
      assertThatThrownBy(
              () -> got(store.endTransaction(ORDERS, 7, true, base -> ByteBuffer.allocate(10), 1)))
          .isInstanceOf(IllegalStateException.class);
    }

    @Test
    @DisplayName("FS-9 are as they were, from the indexes")
    void fromIndexes() {
      SegmentStore store = open(small(directory));
      write(store);
      close(store);
      store = open(small(directory));
      check(store);
      close(store);
    }

    @Test
    @DisplayName("FS-9 are as they were, from the batches")
    void fromBatches() throws IOException {
      SegmentStore store = open(small(directory));
      write(store);
      Path copy = killed(directory);
      close(store);
      for (String file : Stores.files(partition(copy))) {
        if (file.endsWith(".index")) {
          Files.delete(partition(copy).resolve(file));
        }
      }
      store = open(small(copy));
      check(store);
      close(store);
    }
  }
}
