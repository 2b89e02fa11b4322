package dev.timebound.health;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** What the busiest path of every adapter pays for being watched. */
class ReportCostTest {
  private static final int REPORTS = 200_000;

  private static final class Plain implements Member {
    private final String name;

    Plain(String name) {
      this.name = name;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Mono<ProbeAnswer> probe() {
      return Mono.just(ProbeAnswer.ANSWERED);
    }
  }

  private static HealthGroup<Plain> group(HealthEngine engine) {
    HealthGroup<Plain> group =
        engine.group(
            "reports",
            HealthPolicy.silence(Duration.ofSeconds(1))
                .confirmedByProbe(Duration.ofSeconds(1))
                .build());
    group.add(new Plain("a"));
    group.add(new Plain("b"));
    return group;
  }

  @Test
  @DisplayName("HE-2 the reports of a message (progress, a wait's start and end) allocate nothing")
  void allocateNothing() {
    try (HealthEngine engine = HealthEngine.builder().scheduler(Schedulers.parallel()).build()) {
      Claim<Plain> claim = Objects.requireNonNull(group(engine).pick(member -> false, null));
      ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
      long id = Thread.currentThread().getId();
      report(claim); // what the first use of anything allocates
      long before = threads.getThreadAllocatedBytes(id);
      report(claim);
      long bytes = threads.getThreadAllocatedBytes(id) - before;
      // The measuring itself may take a few; one object a report would be millions.
      assertThat(bytes).isLessThan(REPORTS);
      assertThat(claim.succeeded()).isTrue();
    }
  }

  private static void report(Claim<Plain> claim) {
    for (int i = 0; i < REPORTS; i++) {
      claim.waiting();
      claim.progress();
      claim.idle();
    }
  }

  @Test
  @DisplayName("HE-2 picks and reports of many threads on two members park none of them")
  void neverPark() {
    try (HealthEngine engine = HealthEngine.builder().scheduler(Schedulers.single()).build()) {
      HealthGroup<Plain> group = group(engine);
      AtomicInteger ended = new AtomicInteger();
      // These threads must not block: BlockHound fails the one that parks for a lock.
      List<Mono<Void>> load = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        load.add(
            Mono.<Void>fromRunnable(
                    () -> {
                      for (int n = 0; n < 20_000; n++) {
                        Claim<Plain> claim =
                            Objects.requireNonNull(group.pick(member -> false, cause -> {}));
                        claim.waiting();
                        claim.progress();
                        claim.idle();
                        boolean here =
                            n % 50 == 0
                                ? claim.failed(FailureKind.OVERLOAD, null)
                                : claim.succeeded();
                        ended.addAndGet(here ? 1 : 0);
                      }
                    })
                .subscribeOn(Schedulers.parallel()));
      }
      Mono.when(load).block(Duration.ofSeconds(60));
      assertThat(ended.get()).isEqualTo(8 * 20_000);
      assertThat(group.openClaims()).isZero();
    }
  }
}
