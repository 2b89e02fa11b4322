package dev.timebound.bench;

import dev.timebound.health.Claim;
import dev.timebound.health.FailHandle;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.HealthPolicy;
import dev.timebound.health.Member;
import dev.timebound.health.ProbeAnswer;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import reactor.core.publisher.Mono;

/**
 * What a choice among 200 members costs, with its claim and its end, under the policy of a channel
 * pool and with a few claims open on each; beside it a bare scan for the least of 200 volatile
 * counters, which claims nothing, and is not random among equals (HE-2, HE-5).
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class PoolPickBench {
  private static final int MEMBERS = 200;
  private static final int OPEN = 3;
  private static final Predicate<Plain> NONE = member -> false;
  private static final FailHandle FAIL = cause -> {};

  private final AtomicInteger[] counters = new AtomicInteger[MEMBERS];
  private final HealthEngine engine = HealthEngine.builder().seed(7).build();
  private final HealthGroup<Plain> group =
      engine.group(
          "pick",
          HealthPolicy.silence(Duration.ofSeconds(1))
              .confirmedByProbe(Duration.ofSeconds(1))
              .penalty(25, Duration.ofSeconds(5))
              .maxQuarantined(0.5)
              .build());

  /** Fills both. */
  @Setup(Level.Trial)
  public void fill() {
    for (int i = 0; i < MEMBERS; i++) {
      counters[i] = new AtomicInteger(OPEN);
      group.add(new Plain("m" + i));
    }
    for (int i = 0; i < MEMBERS * OPEN; i++) {
      Objects.requireNonNull(group.pick(NONE, FAIL));
    }
  }

  @TearDown(Level.Trial)
  public void close() {
    engine.close();
  }

  /** A pick, its claim and its end. */
  @Benchmark
  public boolean timebound() {
    Claim<Plain> claim = group.pick(NONE, FAIL);
    return claim != null && claim.succeeded();
  }

  /** The index of the least. */
  @Benchmark
  public int scan() {
    int least = Integer.MAX_VALUE;
    int at = -1;
    for (int i = 0; i < counters.length; i++) {
      int n = counters[i].get();
      if (n < least) {
        least = n;
        at = i;
      }
    }
    return at;
  }

  private record Plain(String name) implements Member {
    @Override
    public Mono<ProbeAnswer> probe() {
      return Mono.just(ProbeAnswer.ANSWERED);
    }
  }
}
