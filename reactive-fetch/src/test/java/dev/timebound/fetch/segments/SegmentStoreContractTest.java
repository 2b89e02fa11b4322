package dev.timebound.fetch.segments;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.fetch.kit.PartitionStoreContract;
import dev.timebound.fetch.kit.StoreUnderTest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.io.TempDir;
import reactor.core.publisher.Mono;

class SegmentStoreContractTest {
  /** One batch to three of a segment: most reads cross several. */
  @Nested
  @DisplayName("The segment store keeps the contract, in small segments")
  class Small extends PartitionStoreContract {
    @TempDir Path directory;

    @Override
    protected StoreUnderTest open() {
      return new OnDisk(directory, 256);
    }
  }

  @Nested
  @DisplayName("The segment store keeps the contract, in one segment")
  class Large extends PartitionStoreContract {
    @TempDir Path directory;

    @Override
    protected StoreUnderTest open() {
      return new OnDisk(directory, SegmentStoreBuilder.SEGMENT_BYTES);
    }
  }

  private static final class OnDisk implements StoreUnderTest {
    private static final Duration BOUND = Duration.ofSeconds(30);

    private final SegmentStore store;
    private final Path directory;
    private final Stalling disk = new Stalling();
    private int topics;

    OnDisk(Path directory, int segmentBytes) {
      this.directory = directory;
      this.store =
          got(
              SegmentStore.builder(directory)
                  .segmentBytes(segmentBytes)
                  .indexEvery(150)
                  .disk(disk)
                  .open());
    }

    private static <T> T got(Mono<T> mono) {
      return Objects.requireNonNull(mono.block(BOUND));
    }

    @Override
    public PartitionStore store() {
      return store;
    }

    @Override
    public TopicPartition newPartition() {
      String topic = "topic-" + topics++;
      store.createTopic(topic, 1).block(BOUND);
      return new TopicPartition(topic, 0);
    }

    @Override
    public long append(TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
      return got(store.append(partition, bytes, records, maxTimestamp));
    }

    @Override
    public boolean hasTransactions() {
      return true;
    }

    @Override
    public long appendTransactional(
        TopicPartition partition, long producerId, ByteBuffer bytes, int records) {
      return got(store.appendTransactional(partition, producerId, base -> bytes, records, 1));
    }

    @Override
    public long endTransaction(TopicPartition partition, long producerId, boolean commit) {
      return got(
          store.endTransaction(partition, producerId, commit, base -> ByteBuffer.allocate(10), 1));
    }

    @Override
    public boolean hasRetention() {
      return true;
    }

    @Override
    public void deleteBefore(TopicPartition partition, long offset) {
      store.deleteBefore(partition, offset).block(BOUND);
    }

    @Override
    public boolean canStall() {
      return true;
    }

    @Override
    public void stall(TopicPartition partition) {
      disk.stalled = new CountDownLatch(1);
      disk.of = directory.resolve("topics").resolve(partition.topic());
    }

    @Override
    public void thaw(TopicPartition partition) {
      disk.of = null;
      disk.stalled.countDown();
    }

    @Override
    public void close() {
      store.close().block(BOUND);
      Left.noThread();
      try (var files = Files.walk(directory)) {
        assertThat(files.filter(file -> file.toString().endsWith(".new"))).isEmpty();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /** A disk that does not give the pages of one topic. */
  private static final class Stalling extends Disk {
    volatile CountDownLatch stalled = new CountDownLatch(0);
    volatile @Nullable Path of;

    @Override
    void load(Path file, MappedByteBuffer mapping, int position, int length) throws IOException {
      Path topic = of;
      if (topic != null && file.startsWith(topic)) {
        try {
          stalled.await();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new IOException(e);
        }
      }
      super.load(file, mapping, position, length);
    }
  }
}
