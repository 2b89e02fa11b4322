package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

@DisplayName("FE-16 the record of the latest time")
class LatestTimestampTest {
  private static final TopicPartition PARTITION = new TopicPartition("orders", 0);

  private static MemoryStore storeOf(long... times) {
    MemoryStore store = new MemoryStore();
    store.createTopic("orders", 1);
    for (long time : times) {
      store.append(PARTITION, ByteBuffer.allocate(10), 1, time);
    }
    return store;
  }

  private static ListedOffset listed(long... times) {
    return listed(storeOf(times), Isolation.READ_UNCOMMITTED);
  }

  private static ListedOffset listed(PartitionStore store, Isolation isolation) {
    try (PartitionFetcher fetcher = PartitionFetcher.builder(store).build()) {
      return Objects.requireNonNull(
              fetcher
                  .listOffsets(List.of(OffsetQuery.maxTimestamp(PARTITION)), isolation)
                  .block(Duration.ofSeconds(30)))
          .get(0);
    }
  }

  /** Counts what it is asked by time, and may tell none of the times it finds. */
  private static final class Asked extends ForwardingStore {
    private final boolean tellsTimes;
    private int questions;

    Asked(boolean tellsTimes, long... times) {
      super(storeOf(times));
      this.tellsTimes = tellsTimes;
    }

    @Override
    public Mono<TimestampOffset> offsetFor(
        TopicPartition partition, long timestamp, Isolation isolation) {
      questions++;
      return super.offsetFor(partition, timestamp, isolation)
          .map(found -> tellsTimes ? found : new TimestampOffset(found.offset(), -1));
    }
  }

  @Test
  @DisplayName("FE-16 is the last one where times go up, and the first of those that share it")
  void inOrder() {
    assertThat(listed(5, 7, 9)).isEqualTo(ListedOffset.found(PARTITION, 2, 9));
    assertThat(listed(5, 9, 9)).isEqualTo(ListedOffset.found(PARTITION, 1, 9));
    assertThat(listed(0)).isEqualTo(ListedOffset.found(PARTITION, 0, 0));
  }

  @Test
  @DisplayName("FE-16 is none where there is no record, or none has a time")
  void none() {
    assertThat(listed()).isEqualTo(ListedOffset.found(PARTITION, -1, -1));
    assertThat(listed(-1, -1)).isEqualTo(ListedOffset.found(PARTITION, -1, -1));
  }

  @Test
  @DisplayName("FE-16 is found wherever it is, up to the end of time")
  void outOfOrder() {
    assertThat(listed(3, Long.MAX_VALUE, 1, -1))
        .isEqualTo(ListedOffset.found(PARTITION, 1, Long.MAX_VALUE));
    Random random = new Random(3);
    for (int run = 0; run < 200; run++) {
      long[] times = new long[1 + random.nextInt(8)];
      int latest = 0;
      for (int i = 0; i < times.length; i++) {
        times[i] = random.nextLong() >>> (1 + random.nextInt(62));
        latest = times[i] > times[latest] ? i : latest;
      }
      assertThat(listed(times)).isEqualTo(ListedOffset.found(PARTITION, latest, times[latest]));
    }
  }

  @Test
  @DisplayName("FE-16 takes two questions where times go up")
  void questions() {
    Asked store = new Asked(true, 5, 700, 1L << 40);
    assertThat(listed(store, Isolation.READ_UNCOMMITTED).offset()).isEqualTo(2);
    assertThat(store.questions).isEqualTo(2);
  }

  @Test
  @DisplayName("FE-16 is found by halves in a store that tells no times, out of order too")
  void toldNoTimes() {
    for (long latest : new long[] {3, 1L << 40, Long.MAX_VALUE}) {
      Asked store = new Asked(false, 1, latest, 2);
      assertThat(listed(store, Isolation.READ_UNCOMMITTED))
          .isEqualTo(ListedOffset.found(PARTITION, 1, latest));
      assertThat(store.questions).as("up by doubling, and down by halves").isLessThan(140);
    }
  }

  @Test
  @DisplayName("FE-16 is one that the isolation shows")
  void committed() {
    MemoryStore store = storeOf(5, 7);
    store.appendTransactional(PARTITION, 1, base -> ByteBuffer.allocate(10), 1, 9);
    assertThat(listed(store, Isolation.READ_COMMITTED))
        .isEqualTo(ListedOffset.found(PARTITION, 1, 7));
    assertThat(listed(store, Isolation.READ_UNCOMMITTED))
        .isEqualTo(ListedOffset.found(PARTITION, 2, 9));
  }
}
