package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.FIRST;
import static dev.timebound.fetch.segments.Stores.FRAME;
import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.append;
import static dev.timebound.fetch.segments.Stores.close;
import static dev.timebound.fetch.segments.Stores.found;
import static dev.timebound.fetch.segments.Stores.got;
import static dev.timebound.fetch.segments.Stores.index;
import static dev.timebound.fetch.segments.Stores.killed;
import static dev.timebound.fetch.segments.Stores.open;
import static dev.timebound.fetch.segments.Stores.partition;
import static dev.timebound.fetch.segments.Stores.scribble;
import static dev.timebound.fetch.segments.Stores.segment;
import static dev.timebound.fetch.segments.Stores.small;
import static dev.timebound.fetch.segments.Stores.tenThenKilled;
import static dev.timebound.fetch.segments.Stores.threes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.Disposable;

@DisplayName("A directory that is not as it was left")
class DamageTest {
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
      Path copy = tenThenKilled(directory);
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
      Path copy = tenThenKilled(directory);
      scribble(segment(copy, 18), 0, 'x');
      refused(copy, segment(copy, 18) + " at 0: magic 78", "(expected: 54425345474d4e54)");
      scribble(segment(copy, 18), 0, 'T');
      scribble(segment(copy, 18), 11, 2);
      refused(copy, segment(copy, 18) + " at 8: version 2 (expected: 1)");
      scribble(segment(copy, 18), 11, 1);
      scribble(segment(copy, 18), 23, 19);
      refused(copy, segment(copy, 18) + " at 16: base offset 19 (expected: 18)");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 11, 23})
    @DisplayName("FS-2 a damaged header of a full segment, or before whole batches; cut if so set")
    void damagedHeader(int at) throws IOException {
      Path copy = tenThenKilled(directory);
      scribble(segment(copy, 18), at, 0x5a);
      refused(copy, segment(copy, 18).toString(), "(expected: ");
      assertThat(found(small(copy).cutAtFault(true))).isEqualTo(threes(0, 6));
      scribble(segment(copy, 0), at, 0x5a);
      refused(copy, segment(copy, 0).toString(), "(expected: ");
      assertThat(found(small(copy).cutAtFault(true))).isEmpty();
    }

    @Test
    @DisplayName("FS-2 a damaged header of a segment that was full, by its index")
    void damagedFirstPage() throws IOException {
      SegmentStore store = open(small(directory));
      append(store, 10);
      close(store);
      scribble(segment(directory, 18), 0, 'x');
      scribble(segment(directory, 18), FIRST, 1, 2, 3, 4);
      refused(directory, segment(directory, 18) + " at 0: magic");
      assertThat(found(small(directory).cutAtFault(true))).isEqualTo(threes(0, 6));
    }

    @Test
    @DisplayName("FS-2 what another version wrote is refused, and never cut")
    void anotherVersion() throws IOException {
      Path copy = tenThenKilled(directory);
      scribble(segment(copy, 18), 11, 2);
      scribble(segment(copy, 18), FIRST, 1, 2, 3, 4);
      refused(copy, segment(copy, 18) + " at 8: version 2 (expected: 1)");
      assertThatThrownBy(() -> close(got(small(copy).cutAtFault(true).open())))
          .hasMessageContaining("version 2 (expected: 1)");
      assertThat(segment(copy, 18)).exists();
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
}
