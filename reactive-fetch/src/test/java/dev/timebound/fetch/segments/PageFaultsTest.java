package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.bytes;
import static dev.timebound.fetch.segments.Stores.got;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.RecordBatch;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * Which thread waits for a page no tool for blocking calls can see. Linux counts, for each thread,
 * the pages that it had to wait for, be they on the disk or in the page cache.
 */
@EnabledOnOs(OS.LINUX)
class PageFaultsTest {
  private static final int PAGE = 4096;
  private static final int FIELD_MINOR = 9;
  private static final int FIELD_MAJOR = 11;

  @TempDir Path directory;

  /** Of the calling thread, so far. */
  private static long faults() throws IOException {
    String stat = Files.readString(Path.of("/proc/thread-self/stat"));
    String[] fields = stat.substring(stat.lastIndexOf(')') - 3).split(" ");
    return Long.parseLong(fields[FIELD_MINOR - 1]) + Long.parseLong(fields[FIELD_MAJOR - 1]);
  }

  /** Pages that the calling thread waits for as it reads all of the bytes. */
  private static long faults(List<ByteBuffer> all) throws IOException {
    long before = faults();
    int sum = 0;
    for (int i = 0; i < all.size(); i++) {
      ByteBuffer bytes = all.get(i);
      for (int at = bytes.position(); at < bytes.limit(); at += PAGE) {
        sum += bytes.get(at);
      }
      sum += bytes.get(bytes.limit() - 1);
    }
    assertThat(sum).isNotZero();
    return faults() - before;
  }

  @Test
  @DisplayName("FS-5 whoever takes a batch waits for no page of it: the store's threads did")
  void touched() throws IOException {
    SegmentStoreBuilder settings = SegmentStore.builder(directory).segmentBytes(32 << 20);
    SegmentStore store = Stores.open(settings.threads(2));
    // within one run, across the end of one, and far longer than one
    for (int size : new int[] {1_000, 100_000, 100_000, 6 << 20, 1_000, 10 << 20}) {
      got(store.append(ORDERS, bytes(1, size), 1, 1));
    }
    Stores.close(store);

    store = Stores.open(settings);
    List<RecordBatch> batches = Stores.read(store, 0);
    assertThat(batches).hasSize(6);
    List<ByteBuffer> read = batches.stream().map(RecordBatch::bytes).toList();
    faults(List.of(bytes(1, PAGE))); // the classes that this takes
    long taken = faults(read);
    ByteBuffer untouched = Disk.REAL.map(Stores.segment(directory, 0));
    long control = faults(List.of(untouched.limit(16 << 20)));
    assertThat(control).as("what is not touched before").isGreaterThan(100);
    assertThat(taken).isLessThan(control / 10);
    Stores.close(store);
  }
}
