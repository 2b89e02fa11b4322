package dev.timebound.health;

import static java.time.Duration.ofSeconds;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class PenaltyTest {
  private static HealthPolicy weight(int weight) {
    return HealthPolicy.loadOnly().penalty(weight, ofSeconds(5)).build();
  }

  @Nested
  class What {
    @Test
    @DisplayName("HE-2a BT-4 CONNECTION and OVERLOAD penalise; ANSWER, success and cancel do not")
    void kinds() {
      try (Bench b = new Bench(weight(25), 5)) {
        b.on(0).failed(FailureKind.CONNECTION, null);
        b.on(1).failed(FailureKind.OVERLOAD, null);
        b.on(2).failed(FailureKind.ANSWER, null);
        b.on(3).succeeded();
        b.on(4).cancelled();
        assertThat(b.group.members())
            .extracting(MemberHealth::penalty)
            .containsExactly(25, 25, 0, 0, 0);
      }
    }

    @Test
    @DisplayName("without a penalty in the policy a failure leaves the choice as it is")
    void off() {
      try (Bench b = new Bench(HealthPolicy.loadOnly().build(), 1)) {
        b.on(0).failed(FailureKind.CONNECTION, null);
        assertThat(b.health(0).penalty()).isZero();
      }
    }
  }

  @Nested
  class HowMuch {
    @Test
    @DisplayName("HE-5 a weight without bound is avoided, and not the first choice")
    void withoutBound() {
      try (Bench b = new Bench(weight(Integer.MAX_VALUE), 2)) {
        b.on(1);
        b.on(0).failed(FailureKind.CONNECTION, null);
        b.on(0);
        assertThat(b.picks(20)).containsOnlyKeys("m1");
      }
    }

    @Test
    @DisplayName("HE-5 HE-12 penalty and slow start without bound add up to no less")
    void both() {
      HealthPolicy policy =
          HealthPolicy.consecutiveFailures(1)
              .restoredByProbe(ofSeconds(1))
              .penalty(Integer.MAX_VALUE, ofSeconds(60))
              .slowStart(Integer.MAX_VALUE, ofSeconds(60))
              .build();
      try (Bench b = new Bench(policy, 2)) {
        b.m(0).answers(ProbeAnswer.ANSWERED);
        b.on(1);
        b.on(0).failed(FailureKind.CONNECTION, null);
        b.pass(ofSeconds(3));
        assertThat(b.status(0)).isEqualTo(MemberStatus.HEALTHY);
        assertThat(b.health(0).penalty()).isPositive();
        assertThat(b.picks(20)).containsOnlyKeys("m1");
      }
    }
  }

  @Nested
  class HowLong {
    @Test
    @DisplayName("BT-4 the penalty ends after its time")
    void ends() {
      try (Bench b = new Bench(weight(25), 2)) {
        b.on(0).failed(FailureKind.CONNECTION, null);
        b.pass(4999);
        assertThat(b.health(0).penalty()).isEqualTo(25);
        b.pass(1);
        assertThat(b.health(0).penalty()).isZero();
      }
    }

    @Test
    @DisplayName("BT-4 a further failure extends it and does not add up")
    void extended() {
      try (Bench b = new Bench(weight(25), 2)) {
        b.on(0).failed(FailureKind.CONNECTION, null);
        b.pass(3000);
        b.on(0).failed(FailureKind.OVERLOAD, null);
        assertThat(b.health(0).penalty()).isEqualTo(25);
        b.pass(4999);
        assertThat(b.health(0).penalty()).isEqualTo(25);
        b.pass(1);
        assertThat(b.health(0).penalty()).isZero();
      }
    }

    @Test
    @DisplayName("BT-4 nor do failures of one moment add up")
    void atOnce() {
      try (Bench b = new Bench(weight(25), 2)) {
        for (int i = 0; i < 4; i++) {
          b.on(0).failed(FailureKind.CONNECTION, null);
        }
        assertThat(b.health(0).penalty()).isEqualTo(25);
      }
    }

    @Test
    @DisplayName("HE-5 two members' penalties end each at its own time")
    void two() {
      try (Bench b = new Bench(weight(25), 2)) {
        b.on(0).failed(FailureKind.CONNECTION, null);
        b.pass(2000);
        b.on(1).failed(FailureKind.CONNECTION, null);
        b.pass(3000);
        assertThat(b.health(0).penalty()).isZero();
        assertThat(b.health(1).penalty()).isEqualTo(25);
        b.pass(2000);
        assertThat(b.health(1).penalty()).isZero();
      }
    }
  }

  @Nested
  class Choice {
    @Test
    @DisplayName("BT-4 of two, one that fails gets at most 1 of 10 sequential requests")
    void sequential() {
      try (Bench b = new Bench(weight(25), 2)) {
        int failing = 0;
        for (int i = 0; i < 10; i++) {
          Claim<FakeMember> c = b.pick();
          b.pass(20);
          if (c.member() == b.m(0)) {
            failing++;
            c.failed(FailureKind.CONNECTION, null);
          } else {
            c.succeeded();
          }
        }
        assertThat(failing).isLessThanOrEqualTo(1);
      }
    }

    @Test
    @DisplayName("BT-4 a penalised one is chosen only once every other carries 25 more")
    void twentyFiveMore() {
      try (Bench b = new Bench(weight(25), 3)) {
        b.on(0).failed(FailureKind.CONNECTION, null);
        assertThat(b.picks(50)).isEqualTo(java.util.Map.of("m1", 25, "m2", 25));
        for (int i = 0; i < 50; i++) {
          b.pick();
        }
        assertThat(b.picks(3).keySet()).containsExactlyInAnyOrder("m0", "m1", "m2");
      }
    }
  }

  @Nested
  class Model {
    @Test
    @DisplayName("BT-4 as a model: +10 lets it win most, +25 less than its even part")
    void shares() {
      double ten = share(10);
      double twentyFive = share(25);
      double even = share(-1);
      System.out.printf("BT-4 model: +10 %.3f  +25 %.3f  in turn %.3f%n", ten, twentyFive, even);
      assertThat(ten).isGreaterThan(0.5);
      assertThat(even).isBetween(0.24, 0.26);
      assertThat(twentyFive).isLessThan(even);
    }

    /**
     * The failing one's share of requests: 4 members, 2,000 arrivals a second that do not wait for
     * each other, successes of 50 ms, failures of 2 ms.
     *
     * @param weight negative for taking turns
     */
    private double share(int weight) {
      try (Bench b = new Bench(weight(Math.max(0, weight)), 4)) {
        int[] all = {0, 0};
        int seconds = 20;
        for (int i = 0; i < seconds * 2000; i++) {
          Claim<FakeMember> c =
              weight < 0
                  ? requireNonNull(b.group.inOrder(List.of(b.m(i % 4)), null).next())
                  : requireNonNull(b.group.pick(m -> false, null));
          all[0]++;
          if (c.member() == b.m(0)) {
            all[1]++;
            b.time.schedule(() -> c.failed(FailureKind.CONNECTION, null), 2, TimeUnit.MILLISECONDS);
          } else {
            b.time.schedule(c::succeeded, 50, TimeUnit.MILLISECONDS);
          }
          b.pass(java.time.Duration.ofNanos(500_000));
        }
        b.pass(1000);
        return (double) all[1] / all[0];
      }
    }
  }
}
