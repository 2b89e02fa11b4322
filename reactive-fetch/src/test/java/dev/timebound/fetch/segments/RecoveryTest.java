package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.FIRST;
import static dev.timebound.fetch.segments.Stores.FRAME;
import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.append;
import static dev.timebound.fetch.segments.Stores.bases;
import static dev.timebound.fetch.segments.Stores.close;
import static dev.timebound.fetch.segments.Stores.found;
import static dev.timebound.fetch.segments.Stores.got;
import static dev.timebound.fetch.segments.Stores.index;
import static dev.timebound.fetch.segments.Stores.killed;
import static dev.timebound.fetch.segments.Stores.open;
import static dev.timebound.fetch.segments.Stores.partition;
import static dev.timebound.fetch.segments.Stores.read;
import static dev.timebound.fetch.segments.Stores.scribble;
import static dev.timebound.fetch.segments.Stores.segment;
import static dev.timebound.fetch.segments.Stores.small;
import static dev.timebound.fetch.segments.Stores.tenThenKilled;
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
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("What is found when a store is opened")
class RecoveryTest {
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

  @Nested
  @DisplayName("of a process that died")
  class Killed {
    @Test
    @DisplayName("FS-1 all that had returned is there, and it goes on")
    void all() throws IOException {
      assertThat(found(small(tenThenKilled(directory)))).isEqualTo(threes(0, 10));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 39, 40, 41, 100, 139})
    @DisplayName("FS-2 a batch that was half written is cut")
    void torn(int written) throws IOException {
      Path copy = tenThenKilled(directory);
      truncate(segment(copy, 18), FIRST + 3 * FRAME + written);
      assertThat(found(small(copy))).isEqualTo(threes(0, 9));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 5, 12, 17, 21, 25, 33, 41, 138})
    @DisplayName("FS-2 a batch that is not as it was written is cut, wherever it differs")
    void scribbled(int at) throws IOException {
      Path copy = tenThenKilled(directory);
      scribble(segment(copy, 18), FIRST + 3 * FRAME + at, 0x5a);
      assertThat(found(small(copy))).isEqualTo(threes(0, 9));
    }

    @Test
    @DisplayName("FS-2 what was being written after the last batch is cut, however it looks")
    void garbage() throws IOException {
      Path copy = tenThenKilled(directory);
      scribble(
          segment(copy, 18), FIRST + 4 * FRAME, 1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 30);
      assertThat(found(small(copy))).isEqualTo(threes(0, 10));
    }

    @Test
    @DisplayName("FS-2 what was cut does not come back behind what is appended next")
    void cut() throws IOException {
      Path copy = tenThenKilled(directory);
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
      Path copy = tenThenKilled(directory);
      truncate(segment(copy, 18), FIRST + 50);
      assertThat(found(small(copy))).isEqualTo(threes(0, 6));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 7, 31})
    @DisplayName("FS-2 as a segment was made")
    void madeSegment(int written) throws IOException {
      Path copy = tenThenKilled(directory);
      truncate(segment(copy, 18), written);
      assertThat(found(small(copy))).isEqualTo(threes(0, 6));
    }

    @ParameterizedTest
    @CsvSource({"0, 32", "23, 32", "4, 120", "16, 300"})
    @DisplayName("FS-2 a header that is not as it was written, and no whole batch behind it")
    void tornHeader(int at, int length) throws IOException {
      Path copy = tenThenKilled(directory);
      scribble(segment(copy, 18), at, 0x5a);
      scribble(segment(copy, 18), FIRST + 20, 0x5a);
      truncate(segment(copy, 18), length);
      assertThat(found(small(copy))).isEqualTo(threes(0, 6));
    }

    @Test
    @DisplayName("FS-2 as a segment was made, before the one before it was sealed")
    void unsealed() throws IOException {
      Path copy = tenThenKilled(directory);
      truncate(segment(copy, 18), FIRST);
      Files.delete(index(copy, 0));
      scribble(segment(copy, 0), FIRST + 7 * FRAME, 0); // the hole at its end is still there
      assertThat(found(small(copy))).isEqualTo(threes(0, 6));
    }

    @Test
    @DisplayName("FS-2 as a segment was made, and the end of the one before it was lost")
    void lostEnd() throws IOException {
      Path copy = tenThenKilled(directory);
      truncate(segment(copy, 18), FIRST);
      Files.delete(index(copy, 0));
      truncate(segment(copy, 0), FIRST + 4 * FRAME + 20);
      assertThat(found(small(copy))).isEqualTo(threes(0, 4));
    }

    @Test
    @DisplayName("as a topic was made: all of its partitions are there, or none")
    void topic() throws IOException {
      Path copy = tenThenKilled(directory);
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
