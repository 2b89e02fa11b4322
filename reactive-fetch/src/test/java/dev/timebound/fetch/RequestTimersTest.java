package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.scheduler.VirtualTimeScheduler;

/** What a request asks of its scheduler, on which every timer costs a lock and maybe a wake-up. */
class RequestTimersTest {
  private static final int PARTITIONS = 40;

  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final MemoryStore store = new MemoryStore();

  @Test
  @DisplayName("turns that end in time set no timers of their own, however many there are")
  void few() {
    store.createTopic("t", PARTITIONS);
    FetchRequest.Builder request = FetchRequest.builder().maxBytes(1 << 20).minBytes(1);
    for (int i = 0; i < PARTITIONS; i++) {
      TopicPartition partition = new TopicPartition("t", i);
      store.append(partition, ByteBuffer.allocate(100), 1, -1);
      request.partition(partition, 0);
    }
    try (PartitionFetcher fetcher = PartitionFetcher.builder(store).scheduler(time).build()) {
      long before = time.getScheduledTaskCount();
      FetchResponse response = fetcher.fetch(request.build()).block();

      assertThat(response).isNotNull();
      assertThat(response.sizeInBytes()).isEqualTo(PARTITIONS * 100L);
      assertThat(time.getScheduledTaskCount() - before).isLessThanOrEqualTo(4);
    }
  }

  @Test
  @DisplayName("an idle request wakes at the end of its wait, and leaves no timer behind")
  void idle() {
    store.createTopic("t", 1);
    try (PartitionFetcher fetcher = PartitionFetcher.builder(store).scheduler(time).build()) {
      FetchRequest request =
          FetchRequest.builder()
              .maxWait(Duration.ofMillis(500))
              .minBytes(1)
              .partition(new TopicPartition("t", 0), 0)
              .build();
      CompletableFuture<FetchResponse> answer = fetcher.fetch(request).toFuture();
      time.advanceTimeBy(Duration.ofMillis(499));
      assertThat(answer).isNotDone();
      time.advanceTimeBy(Duration.ofMillis(1));
      assertThat(answer).isCompleted();
      long then = time.getScheduledTaskCount();
      time.advanceTimeBy(Duration.ofSeconds(60));
      assertThat(time.getScheduledTaskCount()).isEqualTo(then);
    }
  }

  @Test
  @DisplayName("an answer leaves nothing on the scheduler")
  void nothingLeft() {
    store.createTopic("t", 1);
    TopicPartition partition = new TopicPartition("t", 0);
    store.append(partition, ByteBuffer.allocate(100), 1, -1);
    ScheduledThreadPoolExecutor pool = new ScheduledThreadPoolExecutor(1);
    pool.setRemoveOnCancelPolicy(true);
    Scheduler timers = Schedulers.fromExecutorService(pool);
    try (PartitionFetcher fetcher = PartitionFetcher.builder(store).scheduler(timers).build()) {
      FetchRequest request = FetchRequest.builder().minBytes(1).partition(partition, 0).build();
      assertThat(fetcher.fetch(request).block()).isNotNull();
      assertThat(pool.getQueue()).isEmpty();
    } finally {
      timers.dispose();
    }
  }
}
