package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/** A store that behaves as it is told, and tells how it was called. Of one thread. */
public final class ScriptedStore implements PartitionStore {
  public static final int SIZE = 100;

  /** One subscription, in milliseconds since the store was made. */
  public record Call(double at, double budget, double cap, @Nullable ReadSpec spec) {}

  private final Scheduler time;
  private final long epoch;
  private final Map<TopicPartition, Script> scripts = new LinkedHashMap<>();
  public Mono<Set<TopicPartition>> metadata =
      Mono.defer(() -> Mono.just(Set.copyOf(scripts.keySet())));
  public boolean background;
  public int metadataCalls;

  public ScriptedStore(Scheduler time) {
    this.time = time;
    this.epoch = time.now(TimeUnit.NANOSECONDS);
  }

  public static TopicPartition partition(int number) {
    return new TopicPartition("orders", number);
  }

  public Script on(int number) {
    return scripts.computeIfAbsent(partition(number), p -> new Script());
  }

  public double now() {
    return (time.now(TimeUnit.NANOSECONDS) - epoch) / 1e6;
  }

  /** Calls under way. */
  public int active() {
    return scripts.values().stream().mapToInt(s -> s.active).sum();
  }

  public int listeners() {
    return scripts.values().stream().mapToInt(s -> s.listeners.size()).sum();
  }

  public static RecordBatch batch(long offset, int size) {
    return new RecordBatch(ByteBuffer.allocate(size), offset, offset, 1, -1);
  }

  /** One partition: by default 10 batches of 100 bytes that are there at once. */
  public final class Script {
    public final List<Call> reads = new ArrayList<>();
    public final List<Call> offsetCalls = new ArrayList<>();
    public final List<Runnable> listeners = new ArrayList<>();
    public long logStart;
    public long end = 10;
    public long stable = -1;
    public int size = SIZE;
    public boolean tells;
    public int active;
    public int cancelled;
    public int authoritativeCalls;
    private @Nullable Mono<Offsets> authority;
    private @Nullable Mono<TimestampOffset> found;

    private IntFunction<Mono<Offsets>> offsets = call -> Mono.fromSupplier(this::current);
    private BiFunction<ReadSpec, Deadline, Flux<RecordBatch>> read = (spec, budget) -> data(spec);

    public Offsets current() {
      return Offsets.of(logStart, end, stable < 0 ? end : stable);
    }

    public Script end(long offset) {
      end = offset;
      return this;
    }

    public Script size(int bytes) {
      size = bytes;
      return this;
    }

    /** What there is, within the limits. */
    public Flux<RecordBatch> data(ReadSpec spec) {
      return Flux.defer(
          () -> {
            List<RecordBatch> batches = new ArrayList<>();
            long bytes = 0;
            long to = spec.isolation() == Isolation.READ_COMMITTED && stable >= 0 ? stable : end;
            for (long at = spec.offset(); at < to && spec.admits(bytes, size); at++) {
              batches.add(batch(at, size));
              bytes += size;
            }
            return Flux.fromIterable(batches);
          });
    }

    /** Appends, and tells whoever listens. */
    public void append(int batches) {
      end += batches;
      List.copyOf(listeners).forEach(Runnable::run);
    }

    public Script tells() {
      tells = true;
      return this;
    }

    public Script read(BiFunction<ReadSpec, Deadline, Flux<RecordBatch>> how) {
      read = how;
      return this;
    }

    /** Never answers. */
    public Script stalls() {
      return read((spec, budget) -> Flux.never());
    }

    /** Gives so many batches, then never answers. */
    public Script stallsAfter(int batches) {
      return read((spec, budget) -> data(spec).take(batches).concatWith(Flux.never()));
    }

    /** Assembles for as long as it may, then gives what there is; nothing where it may not. */
    public Script usesItsBudget() {
      return read(
          (spec, budget) ->
              budget.isExpired()
                  ? Flux.empty()
                  : data(spec).delaySubscription(budget.remaining(), time));
    }

    /** Answers after this long, whatever its budget. */
    public Script takes(double ms) {
      return read((spec, budget) -> data(spec).delaySubscription(duration(ms), time));
    }

    public Script fails(Throwable error) {
      return read((spec, budget) -> Flux.error(error));
    }

    public Script healthy() {
      return read((spec, budget) -> data(spec));
    }

    /** How the n-th call, from 0 on, for the offsets goes. */
    public Script offsets(IntFunction<Mono<Offsets>> how) {
      offsets = how;
      return this;
    }

    public Script offsetsTake(double first) {
      return offsets(
          call ->
              call == 0
                  ? Mono.delay(duration(first), time).map(x -> current())
                  : Mono.fromSupplier(this::current));
    }

    public Script offsetsStall() {
      return offsets(call -> Mono.never());
    }

    public Script authority(Mono<Offsets> word) {
      authority = word;
      return this;
    }

    public Script found(Mono<TimestampOffset> offset) {
      found = offset;
      return this;
    }

    private void begun() {
      active++;
    }

    private void ended() {
      active--;
    }
  }

  public static Duration duration(double ms) {
    return Duration.ofNanos(ShareRow.nanos(ms));
  }

  private Script script(TopicPartition partition) {
    Script script = scripts.get(partition);
    if (script == null) {
      throw new AssertionError("asked for " + partition);
    }
    return script;
  }

  private static double ms(Deadline deadline) {
    return deadline.remainingNanos() / 1e6;
  }

  @Override
  public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return Mono.defer(
        () -> {
          metadataCalls++;
          return metadata.map(
              known -> asked.stream().filter(known::contains).collect(Collectors.toSet()));
        });
  }

  @Override
  public Mono<Offsets> offsets(TopicPartition partition) {
    Script script = script(partition);
    return Mono.deferContextual(
            context -> {
              Deadline cap = Deadlines.current(context);
              script.begun();
              script.offsetCalls.add(new Call(now(), 0, now() + ms(cap), null));
              return script.offsets.apply(script.offsetCalls.size() - 1);
            })
        .doOnCancel(() -> script.cancelled++)
        .doFinally(end -> script.ended());
  }

  @Override
  public Mono<Offsets> authoritativeOffsets(TopicPartition partition) {
    Script script = script(partition);
    return Mono.defer(
        () -> {
          script.authoritativeCalls++;
          Mono<Offsets> authority = script.authority;
          return authority == null ? offsets(partition) : authority;
        });
  }

  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    Script script = script(partition);
    return Flux.deferContextual(
            context -> {
              Deadline cap = Deadlines.current(context);
              script.begun();
              script.reads.add(new Call(now(), Math.max(0, ms(budget)), now() + ms(cap), spec));
              return script.read.apply(spec, budget);
            })
        .doOnCancel(() -> script.cancelled++)
        .doFinally(end -> script.ended());
  }

  @Override
  public Mono<TimestampOffset> offsetFor(
      TopicPartition partition, long timestamp, Isolation isolation) {
    Mono<TimestampOffset> found = script(partition).found;
    return found == null ? Mono.just(TimestampOffset.NONE) : found;
  }

  @Override
  public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    Script script = script(partition);
    if (!script.tells) {
      return Optional.empty();
    }
    script.listeners.add(wake);
    return Optional.of(() -> script.listeners.remove(wake));
  }

  @Override
  public boolean finishesInBackground() {
    return background;
  }
}
