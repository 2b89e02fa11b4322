package dev.timebound.fetch.s3;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** One partition's objects, as its readers see them. */
final class S3Log {
  /** Keys of a listing that is to show the start and the newest object: starts may be left over. */
  private static final int SOME = 8;

  private final Calls calls;
  private final Keys keys;
  private final IndexCache indexes;
  private final int firstRead;
  private final TopicPartition partition;

  /** As last heard: reads end there, as nothing has the next object's name yet. */
  private final AtomicLong knownEnd = new AtomicLong();

  private final AtomicLong knownStart = new AtomicLong();

  /** Whether somebody asked for the end, as a fetcher does, since the last read began. */
  private final AtomicBoolean looked = new AtomicBoolean();

  S3Log(Calls calls, Keys keys, IndexCache indexes, int firstRead, TopicPartition partition) {
    this.calls = calls;
    this.keys = keys;
    this.indexes = indexes;
    this.firstRead = firstRead;
    this.partition = partition;
  }

  // --- where it begins and ends

  Mono<Offsets> offsets() {
    return look().doOnNext(any -> looked.set(true));
  }

  private Mono<Offsets> look() {
    return bounds().flatMap(this::offsets);
  }

  private Mono<Offsets> offsets(Bounds bounds) {
    Mono<Long> end =
        bounds.newest() < 0 ? Mono.just(0L) : index(bounds.newest()).map(ObjectIndex::end);
    return end.map(
        past -> {
          known(past);
          knownStart.accumulateAndGet(bounds.start(), Math::max);
          return Offsets.of(bounds.start(), past, past);
        });
  }

  /** By one listing: starts come first, and then the newest object. */
  Mono<Bounds> bounds() {
    return calls
        .list(keys.partition(partition), "", SOME)
        .flatMap(
            found -> {
              long start = 0;
              String log = keys.log(partition);
              for (String key : found) {
                if (key.startsWith(log)) {
                  return Mono.just(new Bounds(start, Keys.offset(key)));
                }
                start = Math.max(start, Keys.offset(key));
              }
              long begins = start;
              return found.size() < SOME
                  ? Mono.just(new Bounds(begins, -1))
                  : floor(Long.MAX_VALUE).map(newest -> new Bounds(begins, newest));
            });
  }

  /** The base of the object that an offset is in, where one is; −1 where none begins there. */
  Mono<Long> floor(long offset) {
    return calls
        .list(keys.log(partition), keys.before(partition, offset), 1)
        .map(found -> found.isEmpty() ? -1L : Keys.offset(found.get(0)));
  }

  /** A new end, of an append or a look. */
  void known(long end) {
    knownEnd.accumulateAndGet(end, Math::max);
  }

  void indexed(ObjectIndex index) {
    indexes.put(partition, index);
    known(index.end());
  }

  // --- an object's index

  /** An object's index, and the first bytes of it where they were fetched for that. */
  private record Opened(ObjectIndex index, @Nullable ByteBuffer first) {}

  Mono<ObjectIndex> index(long base) {
    return open(base).map(Opened::index);
  }

  private Mono<Opened> open(long base) {
    return Mono.defer(
        () -> {
          @Nullable ObjectIndex cached = indexes.holding(partition, base);
          return cached != null && cached.base == base
              ? Mono.just(new Opened(cached, null))
              : fetched(base);
        });
  }

  private Mono<Opened> fetched(long base) {
    String key = keys.object(partition, base);
    return calls
        .bytes(key, 0, firstRead)
        .flatMap(
            first -> {
              int length = ObjectIndex.lengthOf(first, calls.where(key));
              return length <= first.remaining() ? Mono.just(first) : rest(key, first, length);
            })
        .map(
            bytes -> {
              ObjectIndex index = ObjectIndex.of(bytes, base, calls.where(key));
              indexes.put(partition, index);
              return new Opened(index, bytes);
            })
        .doOnError(Calls::isMissing, gone -> indexes.forget(partition, base));
  }

  private Mono<ByteBuffer> rest(String key, ByteBuffer first, int length) {
    if (first.remaining() < firstRead) {
      return Mono.error(
          ObjectIndex.damaged(
              calls.where(key), first.remaining() + " bytes", "an index of " + length));
    }
    return calls
        .bytes(key, first.remaining(), length - first.remaining())
        .map(
            rest -> {
              if (first.remaining() + rest.remaining() != length) {
                throw ObjectIndex.damaged(
                    calls.where(key),
                    first.remaining() + rest.remaining() + " bytes",
                    "an index of " + length);
              }
              return ByteBuffer.allocate(length).put(first.duplicate()).put(rest).flip();
            });
  }

  // --- reads

  Flux<RecordBatch> read(ReadSpec spec, Deadline budget) {
    return Flux.defer(
        () -> {
          if (budget.isExpired()) {
            return Flux.empty();
          }
          boolean fresh = looked.getAndSet(false);
          long end = knownEnd.get();
          return fresh && spec.offset() < end
              ? new Reading(spec, budget, end).all()
              : look()
                  .map(Offsets::highWatermark)
                  .filter(past -> spec.offset() < past)
                  .flatMapMany(past -> new Reading(spec, budget, past).all());
        });
  }

  /** One read: object after object, of which it needs only a range. */
  private final class Reading {
    private final ReadSpec spec;
    private final Deadline budget;
    private final long end;
    private long next;
    private long bytes;
    private boolean full;

    Reading(ReadSpec spec, Deadline budget, long end) {
      this.spec = spec;
      this.budget = budget;
      this.end = end;
      this.next = Math.max(spec.offset(), knownStart.get());
    }

    /** The budget is looked at between objects: one that was begun is read to its end. */
    Flux<RecordBatch> all() {
      return first().concatWith(Flux.defer(this::following).repeat(this::mayGoOn));
    }

    private boolean mayGoOn() {
      return !full && next < end && !budget.isExpired();
    }

    private Flux<RecordBatch> first() {
      @Nullable ObjectIndex cached = indexes.holding(partition, next);
      return cached != null ? batches(new Opened(cached, null)) : found(next, true);
    }

    private Flux<RecordBatch> found(long offset, boolean mayBeGone) {
      return floor(offset)
          .filter(base -> base >= 0)
          .flatMap(S3Log.this::open)
          .filter(opened -> opened.index().end() > offset)
          .map(this::batches)
          .switchIfEmpty(Mono.fromSupplier(() -> gone(offset, mayBeGone)))
          .flatMapMany(Function.identity());
    }

    /** An offset that no object holds lies before the start, or there is an object missing. */
    private Flux<RecordBatch> gone(long offset, boolean mayBeGone) {
      return bounds()
          .flatMapMany(
              bounds -> {
                if (mayBeGone && offset < bounds.start() && bounds.start() < end) {
                  next = bounds.start();
                  return found(next, false);
                }
                return offset < bounds.start()
                    ? Flux.empty()
                    : Flux.error(
                        ObjectIndex.damaged(
                            calls.where(keys.log(partition)),
                            "no object with the offset " + offset,
                            "one, between " + bounds.start() + " and " + end));
              });
    }

    /** Objects leave no gap: the next one is named by where this one ended. */
    private Flux<RecordBatch> following() {
      return mayGoOn() ? open(next).flatMapMany(this::batches) : Flux.empty();
    }

    private Flux<RecordBatch> batches(Opened opened) {
      ObjectIndex index = opened.index();
      int from = index.holding(next);
      int to = from;
      while (to < index.batches() && spec.admits(bytes, index.sizeOf(to))) {
        bytes += index.sizeOf(to++);
      }
      full = to < index.batches() || bytes >= spec.maxBytes();
      if (from == to) {
        return Flux.empty();
      }
      next = index.base(to);
      String key = keys.object(partition, index.base);
      long past = index.position(to);
      Assembler assembler = new Assembler(index, from, to, calls.where(key));
      List<RecordBatch> here = at(opened.first(), index.position(from), assembler);
      return Flux.fromIterable(here)
          .concatWith(Flux.defer(() -> rest(assembler, past, key)))
          .doOnError(Calls::isMissing, gone -> indexes.forget(partition, index.base));
    }

    private Flux<RecordBatch> rest(Assembler assembler, long to, String key) {
      long from = assembler.position();
      return from == to
          ? Flux.empty()
          : calls
              .get(key, from, Math.toIntExact(to - from))
              .concatMapIterable(assembler::take, 1)
              .concatWith(Flux.defer(() -> whole(assembler, to, key)));
    }

    private Flux<RecordBatch> whole(Assembler assembler, long to, String key) {
      return assembler.position() == to
          ? Flux.empty()
          : Flux.error(
              ObjectIndex.damaged(
                  calls.where(key),
                  "an object that ends at byte " + assembler.position(),
                  "byte " + to + ", as its index says"));
    }

    private List<RecordBatch> at(@Nullable ByteBuffer first, long position, Assembler assembler) {
      return first == null || position >= first.remaining()
          ? List.of()
          : assembler.take(first.duplicate().position((int) position));
    }
  }

  // --- by time

  /**
   * Each object says what the latest time is up to its end, which grows with the offset: the first
   * one that reaches a time is found by halves. Where that time is of an object deleted since, the
   * first record at or after it lies further on.
   */
  Mono<TimestampOffset> offsetFor(long timestamp) {
    return offsets()
        .flatMap(
            offsets ->
                offsets.logStart() == offsets.highWatermark()
                    ? Mono.just(TimestampOffset.NONE)
                    : new ByTime(timestamp, offsets).find());
  }

  private final class ByTime {
    private final long timestamp;
    private final Offsets offsets;
    private long low;
    private long high;

    ByTime(long timestamp, Offsets offsets) {
      this.timestamp = timestamp;
      this.offsets = offsets;
      this.low = offsets.logStart();
      this.high = offsets.highWatermark();
    }

    /** The sought object begins, or is, at {@code low} or after it, and before {@code high}. */
    Mono<TimestampOffset> find() {
      return Mono.defer(this::halve).repeat(() -> low < high).then(Mono.defer(this::within));
    }

    private Mono<ObjectIndex> halve() {
      long middle = low + (high - low) / 2;
      return held(middle)
          .doOnNext(
              index -> {
                if (index.latest >= timestamp) {
                  high = Math.min(middle, Math.max(index.base, offsets.logStart()));
                } else {
                  low = index.end();
                }
              });
    }

    private Mono<ObjectIndex> held(long offset) {
      @Nullable ObjectIndex cached = indexes.holding(partition, offset);
      return cached != null ? Mono.just(cached) : floor(offset).flatMap(S3Log.this::index);
    }

    private Mono<TimestampOffset> within() {
      if (low >= offsets.highWatermark()) {
        return Mono.just(TimestampOffset.NONE);
      }
      return held(low)
          .flatMap(
              index -> {
                for (int i = 0; i < index.batches(); i++) {
                  if (index.time(i) >= timestamp && index.base(i + 1) > offsets.logStart()) {
                    return Mono.just(
                        new TimestampOffset(
                            Math.max(index.base(i), offsets.logStart()), index.time(i)));
                  }
                }
                low = index.end();
                return within();
              });
    }
  }
}
