package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.BOUND;
import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.append;
import static dev.timebound.fetch.segments.Stores.bytes;
import static dev.timebound.fetch.segments.Stores.got;
import static dev.timebound.fetch.segments.Stores.small;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.TopicPartition;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;

@DisplayName("Appends, their turns and their fsyncs")
@NullUnmarked // fields are set before each test
class AppendTurnsTest extends OnFaultyDisk {
  private static void awaited(CountDownLatch latch) {
    try {
      assertThat(latch.await(BOUND.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Nested
  @DisplayName("in turns")
  class Turns {
    @Test
    @DisplayName("FS-6 more than may wait fail at once; the others are written in their order")
    void waiting() throws InterruptedException {
      reopen(small(directory).maxWaiting(3));
      CountDownLatch begun = new CountDownLatch(1);
      CountDownLatch goOn = new CountDownLatch(1);
      CountDownLatch ended = new CountDownLatch(4);
      store
          .append(
              ORDERS,
              base -> {
                begun.countDown();
                awaited(goOn);
                return bytes(base, 10);
              },
              3,
              1)
          .subscribe(base -> ended.countDown());
      awaited(begun);
      List<Long> order = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        store
            .append(ORDERS, base -> bytes(base, 10), 3, 1)
            .subscribe(
                base -> {
                  order.add(base);
                  ended.countDown();
                });
      }
      assertThatThrownBy(() -> got(store.append(ORDERS, bytes(0, 10), 3, 1)))
          .hasMessage("orders-0: 3 appends wait already");
      goOn.countDown();
      assertThat(ended.await(BOUND.toSeconds(), TimeUnit.SECONDS)).isTrue();
      assertThat(order).containsExactly(3L, 6L, 9L);
    }

    @Test
    @DisplayName("FE-22 one that is cancelled before its turn is not written")
    void cancelled() throws InterruptedException {
      CountDownLatch begun = new CountDownLatch(1);
      CountDownLatch goOn = new CountDownLatch(1);
      store
          .append(
              ORDERS,
              base -> {
                begun.countDown();
                awaited(goOn);
                return bytes(base, 10);
              },
              3,
              1)
          .subscribe();
      awaited(begun);
      store.append(ORDERS, bytes(0, 10), 3, 1).subscribe().dispose();
      goOn.countDown();
      assertThat(got(store.append(ORDERS, bytes(0, 10), 3, 1))).isEqualTo(3);
    }

    @Test
    @DisplayName("FS-6 one partition whose append does not end leaves the others' alone")
    void others() {
      TopicPartition other = new TopicPartition("other", 0);
      store.createTopic("other", 1).block(BOUND);
      CountDownLatch goOn = new CountDownLatch(1);
      store
          .append(
              ORDERS,
              base -> {
                awaited(goOn);
                return bytes(base, 10);
              },
              3,
              1)
          .subscribe();
      for (int i = 0; i < 20; i++) {
        assertThat(got(store.append(other, bytes(0, 10), 1, 1))).isEqualTo(i);
      }
      goOn.countDown();
    }

    @Test
    @DisplayName("FS-5 nothing waits for the disk but the store's own threads")
    void threads() {
      append(store, 20);
      Flux.range(0, 200)
          .parallel()
          .runOn(Schedulers.parallel())
          .flatMap(
              i ->
                  store
                      .append(ORDERS, base -> bytes(base, 100), 3, 1)
                      .flatMapMany(
                          base ->
                              store.read(
                                  ORDERS,
                                  new dev.timebound.fetch.ReadSpec(
                                      base,
                                      1000,
                                      true,
                                      dev.timebound.fetch.Isolation.READ_UNCOMMITTED),
                                  dev.timebound.deadline.Deadline.after(BOUND))))
          .sequential()
          .blockLast(BOUND);
      store.deleteBefore(ORDERS, 300).subscribeOn(Schedulers.parallel()).block(BOUND);
      assertThat(disk.threads).allMatch(name -> name.startsWith("timebound-segments-"));
    }
  }

  @Nested
  @DisplayName("are forced to the disk")
  class Forced {
    @Test
    @DisplayName("FS-1 each before it returns, those that wait at the same time together")
    void each() {
      reopen(small(directory).segmentBytes(1 << 20).fsync(Fsync.eachAppend()));
      append(store, 1);
      int before = disk.forced.get();
      append(store, 3);
      assertThat(disk.forced.get() - before).isEqualTo(3);
      CountDownLatch goOn = new CountDownLatch(1);
      AtomicInteger seen = new AtomicInteger();
      var all =
          Flux.range(0, 100)
              .flatMap(
                  i ->
                      store.append(
                          ORDERS,
                          base -> {
                            if (seen.getAndIncrement() == 0) {
                              awaited(goOn);
                            }
                            return bytes(base, 100);
                          },
                          3,
                          1),
                  100)
              .collectList()
              .cache();
      Disposable written = all.subscribe(); // all wait, once this returns
      goOn.countDown();
      got(all);
      written.dispose();
      assertThat(disk.forced.get() - before).isLessThan(3 + 50);
    }

    @Test
    @DisplayName("FS-1 and are seen by readers then only")
    void seen() {
      reopen(small(directory).fsync(Fsync.eachAppend()));
      append(store, 1);
      disk.forces = false;
      assertThatThrownBy(() -> append(store, 1)).isInstanceOf(SegmentStoreException.class);
      assertThat(got(store.offsets(ORDERS)).highWatermark()).isEqualTo(3);
    }

    @Test
    @DisplayName("FS-1 after the interval, once for all that came in it")
    void interval() {
      reopen(small(directory).segmentBytes(1 << 20).fsync(Fsync.every(Duration.ofMillis(200))));
      int before = disk.forced.get();
      append(store, 20);
      Left.until(() -> disk.forced.get() > before);
      int after = disk.forced.get();
      assertThat(after - before).isLessThan(20);
      append(store, 1);
      Left.until(() -> disk.forced.get() > after);
    }

    @Test
    @DisplayName("FS-1 never: not until a segment is sealed, and then nobody waits for it")
    void never() {
      int before = disk.forced.get();
      append(store, 6);
      assertThat(disk.forced.get()).isEqualTo(before);
      append(store, 1);
      Left.until(() -> Files.exists(Stores.index(directory, 0)));
      assertThat(disk.forced.get()).isEqualTo(before + 1);
    }
  }
}
