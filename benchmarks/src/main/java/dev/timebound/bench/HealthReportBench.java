package dev.timebound.bench;

import dev.timebound.health.Claim;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.HealthPolicy;
import dev.timebound.health.Member;
import dev.timebound.health.ProbeAnswer;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import reactor.core.publisher.Mono;

/**
 * What being watched costs a message: its caller asks and has nothing at hand, the message comes
 * in, the caller waits no more; under a policy that samples silence at the same time. Beside it one
 * atomic add (HE-2).
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class HealthReportBench {
  private final AtomicLong counter = new AtomicLong();
  private final HealthEngine engine = HealthEngine.builder().seed(7).build();
  private final HealthGroup<Plain> group =
      engine.group(
          "report",
          HealthPolicy.silence(Duration.ofSeconds(1))
              .confirmedByProbe(Duration.ofSeconds(1))
              .build());
  private final Claim<Plain> claim = open();

  /** Two members: silence is measured against another's progress. */
  private Claim<Plain> open() {
    group.add(new Plain("a"));
    group.add(new Plain("b"));
    return Objects.requireNonNull(group.pick(member -> false, null));
  }

  @TearDown(Level.Trial)
  public void close() {
    claim.cancelled();
    engine.close();
  }

  /** The reports of one message. */
  @Benchmark
  public void timebound() {
    claim.waiting();
    claim.progress();
    claim.idle();
  }

  /** The reports of one message of many that are at hand: nobody waits. */
  @Benchmark
  public void progress() {
    claim.progress();
  }

  /** One atomic add. */
  @Benchmark
  public long add() {
    return counter.incrementAndGet();
  }

  private record Plain(String name) implements Member {
    @Override
    public Mono<ProbeAnswer> probe() {
      return Mono.just(ProbeAnswer.ANSWERED);
    }
  }
}
