package dev.timebound.bench;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.MemoryStore;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.SharePolicy;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Ten partitions of a store in memory, four batches of each, through the fetcher under two of its
 * policies; beside it what the same store is asked without any sharing: which partitions exist, and
 * of each in turn its offsets and its batches. An operation is one partition's read.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class FetchShareBench {
  private static final int PARTITIONS = 10;
  private static final int BATCHES = 4;
  private static final int BATCH_BYTES = 16 << 10;
  private static final int PARTITION_BYTES = BATCHES * BATCH_BYTES;

  private final MemoryStore store = new MemoryStore();
  private final List<TopicPartition> partitions =
      IntStream.range(0, PARTITIONS).mapToObj(i -> new TopicPartition("t", i)).toList();
  private final FetchRequest request =
      new FetchRequest(
          Duration.ofMillis(500),
          1,
          50 << 20,
          Isolation.READ_UNCOMMITTED,
          partitions.stream()
              .map(partition -> new FetchRequest.Partition(partition, 0, PARTITION_BYTES))
              .toList());
  private final PartitionFetcher parallel = PartitionFetcher.builder(store).build();
  private final PartitionFetcher halving =
      PartitionFetcher.builder(store).policy(SharePolicy.HALVING).build();

  /** More batches than are read. */
  @Setup(Level.Trial)
  public void fill() {
    store.createTopic("t", PARTITIONS);
    for (TopicPartition partition : partitions) {
      for (int i = 0; i < 2 * BATCHES; i++) {
        store.append(partition, ByteBuffer.allocate(BATCH_BYTES), 15, 1);
      }
    }
  }

  @TearDown(Level.Trial)
  public void close() {
    parallel.close();
    halving.close();
  }

  /** All partitions at the same time: the default. */
  @Benchmark
  @OperationsPerInvocation(PARTITIONS)
  public @Nullable FetchResponse parallel() {
    return parallel.fetch(request).block();
  }

  /** One after the other, each within half of what is left. */
  @Benchmark
  @OperationsPerInvocation(PARTITIONS)
  public @Nullable FetchResponse halving() {
    return halving.fetch(request).block();
  }

  /** One after the other, with nothing that bounds a read. */
  @Benchmark
  @OperationsPerInvocation(PARTITIONS)
  public @Nullable List<Read> plain() {
    Set<TopicPartition> asked = new LinkedHashSet<>(partitions);
    return store
        .existing(asked)
        .flatMapMany(Flux::fromIterable)
        .concatMap(this::read)
        .collectList()
        .block();
  }

  private Mono<Read> read(TopicPartition partition) {
    ReadSpec spec = new ReadSpec(0, PARTITION_BYTES, true, Isolation.READ_UNCOMMITTED);
    return store
        .offsets(partition)
        .flatMap(
            offsets ->
                store
                    .read(partition, spec, Deadline.none())
                    .collectList()
                    .map(batches -> new Read(partition, offsets, batches)));
  }

  /** What a partition's answer is made of. */
  public record Read(TopicPartition partition, Offsets offsets, List<RecordBatch> batches) {}
}
