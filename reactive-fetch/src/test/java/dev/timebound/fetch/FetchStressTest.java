package dev.timebound.fetch;

import static dev.timebound.fetch.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@DisplayName("Many fetches at once, on real threads")
class FetchStressTest {
  private static final int PARTITIONS = 12;
  private static final Duration BOUND = Duration.ofSeconds(60);

  private static final int BATCH = 100;
  private final MemoryStore memory = new MemoryStore();
  private final AtomicInteger active = new AtomicInteger();

  FetchStressTest() {
    memory.createTopic("orders", PARTITIONS);
  }

  private static TopicPartition partition(int i) {
    return new TopicPartition("orders", i);
  }

  private void append(int partition) {
    memory.append(partition(partition), ByteBuffer.allocate(BATCH), 1, 1);
  }

  /** Answers late and on other threads; of some partitions now and then not at all. */
  private final class Unsteady extends ForwardingStore {
    private final Random random;

    Unsteady(long seed) {
      super(memory);
      random = new Random(seed);
    }

    private Duration delay() {
      synchronized (random) {
        return Duration.ofNanos(random.nextInt(3_000_000));
      }
    }

    private boolean stalls() {
      synchronized (random) {
        return random.nextInt(20) == 0;
      }
    }

    @Override
    public Mono<Offsets> offsets(TopicPartition partition) {
      return counted(
              stalls() ? Flux.never() : super.offsets(partition).delaySubscription(delay()).flux())
          .next();
    }

    @Override
    public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
      Flux<RecordBatch> data = super.read(partition, spec, budget).delaySubscription(delay());
      return counted(stalls() ? data.take(2).concatWith(Flux.never()) : data);
    }

    private <T> Flux<T> counted(Flux<T> flux) {
      return flux.doOnSubscribe(s -> active.incrementAndGet())
          .doFinally(end -> active.decrementAndGet());
    }
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName("FE-22 FE-25 all are answered, in order and once; nothing is left, cancels and all")
  void nothingIsLeft(SharePolicy policy) {
    BoundedStore bounded = BoundedStore.builder(new Unsteady(42), 40).maxPerPartition(40).build();
    for (int i = 0; i < PARTITIONS; i++) {
      append(i);
    }
    Random random = new Random(7);
    ConcurrentLinkedQueue<Throwable> faults = new ConcurrentLinkedQueue<>();
    AtomicInteger ended = new AtomicInteger();
    try (PartitionFetcher fetcher =
        PartitionFetcher.builder(bounded)
            .policy(policy)
            .extraTime(Duration.ofMillis(300))
            .build()) {
      FetchClient client = fetcher.client();
      List<Disposable> cancelled = new ArrayList<>();
      int requests = 600;
      for (int r = 0; r < requests; r++) {
        FetchRequest.Builder request =
            FetchRequest.builder()
                .maxWait(Duration.ofMillis(random.nextInt(100)))
                .minBytes(random.nextInt(600))
                .maxBytes(500 + random.nextInt(2000));
        int count = 1 + random.nextInt(PARTITIONS);
        for (int i = 0; i < count; i++) {
          request.partition(partition(i), 0, 100 + random.nextInt(1000));
        }
        FetchRequest built = request.build();
        Disposable fetch =
            client
                .fetch(built)
                .doFinally(end -> ended.incrementAndGet())
                .subscribe(response -> check(built, response, faults), faults::add);
        if (random.nextInt(4) == 0) {
          cancelled.add(fetch);
        }
        if (cancelled.size() > 5) {
          cancelled.remove(0).dispose();
        }
        append(random.nextInt(PARTITIONS));
      }
      eventually(() -> assertThat(ended.get()).isGreaterThanOrEqualTo(requests - 6));
      cancelled.forEach(Disposable::dispose);
      eventually(() -> assertThat(ended).hasValue(requests));
      client.close();
    }
    assertThat(faults).isEmpty();
    eventually(
        () -> {
          assertThat(active).hasValue(0);
          assertThat(bounded.held()).isZero();
          assertThat(bounded.waiting()).isZero();
          for (int i = 0; i < PARTITIONS; i++) {
            assertThat(memory.listeners(partition(i))).isZero();
          }
        });
  }

  private static void check(
      FetchRequest request, FetchResponse response, ConcurrentLinkedQueue<Throwable> faults) {
    try {
      assertThat(response.partitions())
          .extracting(PartitionData::partition)
          .isEqualTo(request.partitions().stream().map(FetchRequest.Partition::partition).toList());
      // reads that run at once may exceed it by the part of one first batch that had no room
      assertThat(response.sizeInBytes()).isLessThan(request.maxBytes() + BATCH);
      for (PartitionData data : response.partitions()) {
        if (data.error() == ErrorCode.STORAGE_ERROR) {
          // on a machine that is busy with other things, metadata may not come in its quarter
          assertThat(data.cause()).isInstanceOf(DeadlineExceededException.class);
          continue;
        }
        assertThat(data.error()).isEqualTo(ErrorCode.NONE);
        assertThat(data.batches().stream().map(RecordBatch::baseOffset))
            .containsExactlyElementsOf(LongStream.range(0, data.batches().size()).boxed().toList());
        if (!data.batches().isEmpty()) {
          assertThat(data.highWatermark()).isGreaterThanOrEqualTo(data.batches().size());
        }
      }
    } catch (AssertionError e) {
      faults.add(e);
    }
  }

  @Test
  @DisplayName("FE-8 no wake-up is lost: a tail sees every append, in order, as they come")
  void noWakeUpIsLost() {
    int appends = 3000;
    try (PartitionFetcher fetcher = PartitionFetcher.builder(memory).build()) {
      Mono<List<Long>> seen =
          fetcher
              .tail(partition(0), 0)
              .map(RecordBatch::baseOffset)
              .take(appends)
              .collectList()
              .timeout(BOUND)
              .cache();
      seen.subscribe();
      for (int i = 0; i < appends; i++) {
        append(0);
        if (i % 50 == 0) {
          Thread.onSpinWait();
        }
      }
      assertThat(Objects.requireNonNull(seen.block(BOUND)))
          .containsExactlyElementsOf(LongStream.range(0, appends).boxed().toList());
    }
    eventually(() -> assertThat(memory.listeners(partition(0))).isZero());
  }
}
