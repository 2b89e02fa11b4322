package dev.timebound.fetch;

import static dev.timebound.fetch.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

@DisplayName("FE-8 appends that a request waits for")
class AppendWatchesTest {
  private static final TopicPartition PARTITION = new TopicPartition("t", 0);

  private final ScheduledThreadPoolExecutor thread = new ScheduledThreadPoolExecutor(1);
  private final Scheduler time = Schedulers.fromExecutorService(thread);
  private final MemoryStore store = new MemoryStore();
  private final List<Integer> due = new CopyOnWriteArrayList<>();

  @AfterEach
  void nothingIsLeft() {
    assertThat(thread.getQueue()).isEmpty();
    time.dispose();
    thread.shutdown();
  }

  private AppendWatches watches(PartitionStore of) {
    RequestClock clock = new RequestClock(Deadline.after(Duration.ofSeconds(5), time));
    return new AppendWatches(of, new RunTimer(clock, () -> {}), due::add);
  }

  private void append() {
    store.append(PARTITION, ByteBuffer.allocate(10), 1, 1);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  @DisplayName("many at once are one wake-up, on the request's scheduler; the next is another")
  void coalesced() {
    store.createTopic("t", 1);
    Disposable watch = watches(store).watch(7, PARTITION).orElseThrow();
    CountDownLatch busy = new CountDownLatch(1);
    thread.execute(() -> await(busy));
    for (int i = 0; i < 5; i++) {
      append();
    }
    assertThat(due).as("on the appender's thread").isEmpty();
    busy.countDown();
    eventually(() -> assertThat(due).containsExactly(7));
    append();
    eventually(() -> assertThat(due).containsExactly(7, 7));
    watch.dispose();
    append();
    assertThat(thread.getQueue()).isEmpty();
    assertThat(due).hasSize(2);
    assertThat(store.listeners(PARTITION)).isZero();
  }

  @Test
  @DisplayName("a store that cannot tell, or fails to, is asked again after pauses")
  void cannotTell() {
    assertThat(watches(store).watch(0, PARTITION)).isEmpty();
    PartitionStore fails =
        new ForwardingStore(store) {
          @Override
          public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
            throw new IllegalStateException("no connection");
          }
        };
    assertThat(watches(fails).watch(0, PARTITION)).isEmpty();
  }
}
