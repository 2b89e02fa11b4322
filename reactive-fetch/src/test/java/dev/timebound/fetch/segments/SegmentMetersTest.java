package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.append;
import static dev.timebound.fetch.segments.Stores.bytes;
import static dev.timebound.fetch.segments.Stores.open;
import static dev.timebound.fetch.segments.Stores.read;
import static dev.timebound.fetch.segments.Stores.small;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@DisplayName("Meters of a store in segment files")
class SegmentMetersTest {
  private static final String PREFIX = "timebound.fetch.segments.";

  @TempDir Path directory;
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  private final FaultyDisk disk = new FaultyDisk();

  @AfterEach
  void nothingIsLeft() {
    assertThat(meters.find(PREFIX + "waiting").gauge()).as("gauges end with the store").isNull();
    Left.noThread();
  }

  private SegmentStoreBuilder settings() {
    return small(directory).disk(disk).meters(meters);
  }

  private long count(String name, String... tags) {
    var timer = meters.find(PREFIX + name).tags(tags).timer();
    return timer == null ? 0 : timer.count();
  }

  private double value(String gauge) {
    return meters.get(PREFIX + gauge).tag("directory", directory.toString()).gauge().value();
  }

  @Test
  @DisplayName("appends, bytes, and the calls that wait for the disk")
  void counted() {
    SegmentStore store = open(settings().fsync(Fsync.eachAppend()));
    append(store, 10);
    assertThat(count("appends", "outcome", "written")).isEqualTo(10);
    assertThat(count("disk", "call", "write", "outcome", "done")).isGreaterThanOrEqualTo(10);
    assertThat(count("disk", "call", "force", "outcome", "done")).isGreaterThanOrEqualTo(10);
    assertThat(meters.get(PREFIX + "written").counter().count()).isGreaterThan(10 * 100);
    assertThat(read(store, 0)).hasSize(10);
    assertThat(count("disk", "call", "map")).isEqualTo(2);
    assertThat(count("disk", "call", "load")).isGreaterThanOrEqualTo(2);
    assertThat(value("mapped")).isEqualTo(2);
    assertThat(value("open.files")).isEqualTo(1);
    assertThat(value("waiting")).isZero();
    Stores.close(store);
  }

  @Test
  @DisplayName("what failed is told apart")
  void failed() {
    SegmentStore store = open(settings());
    append(store, 1);
    disk.room = 50;
    assertThatThrownBy(() -> append(store, 1)).isInstanceOf(SegmentStoreException.class);
    assertThat(count("appends", "outcome", "failed")).isEqualTo(1);
    assertThat(count("disk", "call", "write", "outcome", "failed")).isEqualTo(1);
    disk.room = Long.MAX_VALUE;
    Stores.close(store);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(Stores.BOUND.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  @DisplayName("appends that wait are seen")
  void waiting() {
    SegmentStore store = open(settings());
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch first = new CountDownLatch(1);
    CountDownLatch all = new CountDownLatch(6);
    store
        .append(
            ORDERS,
            base -> {
              begun.countDown();
              await(first);
              return bytes(base, 10);
            },
            1,
            1)
        .subscribe(base -> all.countDown());
    await(begun); // those that come now are not in its turn
    for (int i = 0; i < 5; i++) {
      store.append(ORDERS, base -> bytes(base, 10), 1, 1).subscribe(base -> all.countDown());
    }
    assertThat(value("waiting")).isEqualTo(5);
    first.countDown();
    await(all);
    assertThat(value("waiting")).isZero();
    Stores.close(store);
  }
}
