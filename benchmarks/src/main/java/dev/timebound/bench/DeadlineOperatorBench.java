package dev.timebound.bench;

import dev.timebound.deadline.Deadlines;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Blackhole;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;

/**
 * What it costs to bound a Mono that answers at once: {@code Deadlines.within} beside Reactor's own
 * {@code timeout(Duration)}, on the same source, the same budget and the same scheduler (DL-9).
 * Each subscription starts and stops a timer.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class DeadlineOperatorBench {
  private static final Duration BUDGET = Duration.ofMillis(800);

  private final Mono<Integer> source = Mono.fromSupplier(() -> 42);
  private final Mono<Integer> timebound = source.transform(Deadlines.within(BUDGET, "bench"));
  private final Mono<Integer> reactor = source.timeout(BUDGET);

  /** Bounded by a deadline. */
  @Benchmark
  public void timebound(Blackhole blackhole) {
    timebound.subscribe(new Consumer(blackhole));
  }

  /** Bounded by Reactor's timeout. */
  @Benchmark
  public void reactor(Blackhole blackhole) {
    reactor.subscribe(new Consumer(blackhole));
  }

  /** Not bounded at all: what both are added to. */
  @Benchmark
  public void unbounded(Blackhole blackhole) {
    source.subscribe(new Consumer(blackhole));
  }

  private record Consumer(Blackhole blackhole) implements CoreSubscriber<Integer> {
    @Override
    public void onSubscribe(Subscription subscription) {
      subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(@Nullable Integer item) {
      blackhole.consume(item);
    }

    @Override
    public void onError(Throwable error) {
      throw new IllegalStateException("the source never fails", error);
    }

    @Override
    public void onComplete() {
      blackhole.consume(this);
    }
  }
}
