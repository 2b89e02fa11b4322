package dev.timebound.fetch.segments;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Partitions on a local disk, as append-only segment files. Appends wake waiting fetches, and are
 * seen by readers when they return. Batches are handed out as views of mapped segments, without a
 * copy, once they are in memory; a batch stays valid whatever becomes of its file.
 *
 * <p>Nothing waits for the disk but the store's own threads, and signals come on them: who blocks
 * one holds up the others. Nothing is done before subscription. What fails of the disk is a {@link
 * SegmentStoreException}. Thread-safe.
 */
public final class SegmentStore implements PartitionStore {
  private final StoreParts parts;
  private final StoreDirectory directory;
  private final IoThreads threads;
  private final Map<TopicPartition, SegmentLog> logs = new ConcurrentHashMap<>();
  private final Mono<Void> closing;
  private volatile boolean closed;

  private SegmentStore(StoreParts parts, StoreDirectory directory, IoThreads threads) {
    this.parts = parts;
    this.directory = directory;
    this.threads = threads;
    this.closing = Mono.defer(this::end).cache();
    parts.meters().gauge("waiting", this::waiting);
    parts.meters().gauge("mapped", parts.maps()::size);
    parts.meters().gauge("open.files", parts.channels()::size);
  }

  /** Of a store in a directory of its own. */
  public static SegmentStoreBuilder builder(Path directory) {
    return new SegmentStoreBuilder(directory);
  }

  static Mono<SegmentStore> open(SegmentStoreBuilder builder) {
    return Mono.defer(
        () -> {
          Mono<SegmentStore> opening = opening(builder).cache();
          // what has the lock gives it back, whether somebody waits for it or not
          return opening.doOnCancel(
              () -> opening.flatMap(SegmentStore::close).subscribe(done -> {}, e -> {}));
        });
  }

  private static Mono<SegmentStore> opening(SegmentStoreBuilder builder) {
    IoThreads threads = IoThreads.of(builder.scheduler, builder.threads);
    StoreParts parts = parts(builder, threads);
    return threads
        .call(() -> StoreDirectory.open(builder.directory))
        .flatMap(
            directory -> {
              SegmentStore store = new SegmentStore(parts, directory, threads);
              return store
                  .recover(builder.threads)
                  .thenReturn(store)
                  .onErrorResume(e -> store.abandon().then(Mono.error(e)));
            })
        .onErrorMap(IOException.class, e -> failed(builder.directory, e))
        .doOnError(e -> threads.end());
  }

  private static SegmentStoreException failed(Path what, IOException e) {
    return new SegmentStoreException(what + ": " + e, e);
  }

  private static StoreParts parts(SegmentStoreBuilder of, IoThreads threads) {
    SegmentMeters meters = SegmentMeters.of(of.meters, of.directory);
    Disk disk = meters.timed(of.disk, threads.scheduler());
    return new StoreParts(
        new SegmentSettings(of.segmentBytes, of.indexEvery, of.fsync, of.maxWaiting, of.cutAtFault),
        disk,
        threads.scheduler(),
        Schedulers.fromExecutor(threads.scheduler()::schedule),
        new SegmentMaps(disk, of.maxMapped, of.indexEvery),
        new WriteChannels(disk, of.maxOpenFiles),
        new Staging(),
        threads.background(),
        meters);
  }

  private Mono<Void> recover(int atOnce) {
    return threads
        .call(directory::partitions)
        .flatMapIterable(Map::entrySet)
        .flatMap(
            each ->
                threads
                    .call(() -> Recovery.open(parts, each.getValue()))
                    .doOnNext(found -> logs.put(each.getKey(), log(each, found))),
            atOnce)
        .then();
  }

  private SegmentLog log(Map.Entry<TopicPartition, Path> of, Recovered found) {
    return new SegmentLog(parts, of.getKey(), of.getValue(), found);
  }

  /**
   * Makes a topic's partitions, from 0 on; those that are there stay as they are.
   *
   * @param partitions {@code >= 1}
   */
  public Mono<Void> createTopic(String topic, int partitions) {
    SegmentStoreBuilder.between("partitions", partitions, 1, Integer.MAX_VALUE);
    TopicPartition first = new TopicPartition(topic, 0);
    StoreDirectory.requireName(topic);
    return threads
        .call(() -> directory.create(topic, partitions, !parts.settings().fsync().isNever()))
        .onErrorMap(IOException.class, e -> failed(Path.of(topic), e))
        .doOnNext(
            paths -> {
              for (int i = 0; i < paths.size(); i++) {
                Path path = paths.get(i);
                logs.computeIfAbsent(
                    new TopicPartition(first.topic(), i),
                    id -> new SegmentLog(parts, id, path, Recovered.NOTHING));
              }
            })
        .then();
  }

  /** Those that there are. */
  public Set<TopicPartition> partitions() {
    return Set.copyOf(logs.keySet());
  }

  /**
   * Appends a batch; readers see it when this returns, and by {@link Fsync} it is then on the disk
   * or not. Of two appends to one partition the one subscribed first comes first. One that fails
   * leaves the log as it was. A cancel stops it only before its turn.
   *
   * @param records how many offsets it takes, {@code >= 1}
   * @param maxTimestamp milliseconds since 1970; −1 for none
   * @return its base offset; {@link IllegalArgumentException} where there is no such partition
   */
  public Mono<Long> append(
      TopicPartition partition, ByteBuffer bytes, int records, long maxTimestamp) {
    return append(partition, base -> bytes, records, maxTimestamp);
  }

  /**
   * As before, of a batch whose bytes tell its base offset. The function runs on the store's
   * threads, once, one append of a partition after the other, though others may wait to be written;
   * what it throws fails the append, which then takes no offset. Its bytes may be used again once
   * the append has ended.
   */
  public Mono<Long> append(
      TopicPartition partition, LongFunction<ByteBuffer> bytes, int records, long maxTimestamp) {
    return append(Frame.Kind.PLAIN, partition, -1, bytes, records, maxTimestamp);
  }

  /**
   * Appends a batch of a producer's transaction, which its first batch opens: READ_COMMITTED
   * readers see it, and all that follows it, once it has ended.
   */
  public Mono<Long> appendTransactional(
      TopicPartition partition,
      long producerId,
      LongFunction<ByteBuffer> bytes,
      int records,
      long maxTimestamp) {
    return append(Frame.Kind.TRANSACTIONAL, partition, producerId, bytes, records, maxTimestamp);
  }

  /**
   * Ends a producer's transaction on a partition by a marker, which takes one offset.
   *
   * @return the marker's offset; {@link IllegalStateException} where the producer has none open
   */
  public Mono<Long> endTransaction(
      TopicPartition partition,
      long producerId,
      boolean commit,
      LongFunction<ByteBuffer> marker,
      long timestamp) {
    Frame.Kind kind = commit ? Frame.Kind.COMMIT : Frame.Kind.ABORT;
    return append(kind, partition, producerId, marker, 1, timestamp);
  }

  private Mono<Long> append(
      Frame.Kind kind,
      TopicPartition partition,
      long producerId,
      LongFunction<ByteBuffer> bytes,
      int records,
      long maxTimestamp) {
    Objects.requireNonNull(bytes, "bytes");
    SegmentStoreBuilder.between("records", records, 1, Integer.MAX_VALUE);
    return Mono.defer(() -> log(partition).append(kind, producerId, bytes, records, maxTimestamp));
  }

  /**
   * Moves the partition's start up to an offset; segments that end before it are deleted, save the
   * one that is appended to. An offset before the start changes nothing.
   *
   * @return {@link IllegalArgumentException} where it lies past the high watermark
   */
  public Mono<Void> deleteBefore(TopicPartition partition, long offset) {
    return Mono.defer(() -> log(partition).deleteBefore(offset));
  }

  @Override
  public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return Mono.fromSupplier(
        () -> {
          Set<TopicPartition> found = new LinkedHashSet<>(asked);
          found.retainAll(logs.keySet());
          return found;
        });
  }

  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    return Mono.fromSupplier(() -> log(partition).view().offsets());
  }

  /**
   * With a budget that has passed: of one segment, what is mapped and in memory at that moment
   * (FE-4).
   */
  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.defer(
        () -> {
          SegmentLog log = log(partition);
          SegmentReader reader = new SegmentReader(parts, log::view, spec, budget);
          if (budget.isExpired()) {
            return Flux.fromIterable(reader.resident());
          }
          return Flux.<RecordBatch, SegmentReader>generate(() -> reader, SegmentReader::next)
              .subscribeOn(parts.reads());
        });
  }

  /** As exact as batches are: the first offset of the first batch with a record at or after it. */
  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    return Mono.defer(
        () -> {
          SegmentLog log = log(partition);
          return threads.call(() -> log.offsetFor(timestamp, isolation));
        });
  }

  @Override
  public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    SegmentLog log = logs.get(partition);
    return log == null ? Optional.empty() : Optional.of(log.listen(wake));
  }

  /** Appends that wait, of all partitions. */
  private int waiting() {
    return logs.values().stream().mapToInt(SegmentLog::waiting).sum();
  }

  private SegmentLog log(TopicPartition partition) {
    @Nullable SegmentLog log = logs.get(Objects.requireNonNull(partition, "partition"));
    if (closed) {
      throw new SegmentStoreException(partition + ": the store was closed", null);
    }
    if (log == null) {
      throw SegmentStoreBuilder.refused("partition", partition, "one that was created");
    }
    return log;
  }

  /**
   * Ends the store: appends that came before are written, all is forced to the disk, the directory
   * is given free, and the store's own threads end. Batches that were read stay valid. Again: the
   * same.
   */
  public Mono<Void> close() {
    return closing;
  }

  private Mono<Void> end() {
    closed = true;
    return Flux.fromIterable(List.copyOf(logs.values())).flatMap(SegmentLog::end).then(abandon());
  }

  /** As it is, once what is under way has ended. */
  private Mono<Void> abandon() {
    return threads
        .background()
        .end()
        .then(
            threads.call(
                () -> {
                  directory.close();
                  return true;
                }))
        .then()
        .doOnTerminate(parts.meters()::end)
        .doFinally(any -> threads.end());
  }
}
