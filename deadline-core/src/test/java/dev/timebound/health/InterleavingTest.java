package dev.timebound.health;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Two threads that have both looked before either acts: no luck is needed, and none helps. */
@DisplayName("HE-12a two who looked at the same moment")
class InterleavingTest {
  private static final Interleaved INTERLEAVED =
      new Interleaved(
          Map.of(
              Slot.class.getName(), new Interleaved.Read("takeTrial", "trial"),
              OpenClaim.class.getName(), new Interleaved.Read("ends", "ended")));

  static final class Trial implements Callable<Integer> {
    @Override
    public Integer call() throws Exception {
      try (Bench b =
          new Bench(
              HealthPolicy.consecutiveFailures(1).cooldown(Duration.ofSeconds(5)).build(), 2)) {
        b.on(0).failed(FailureKind.CONNECTION, null);
        b.pass(Duration.ofSeconds(5));
        List<FakeMember> order = List.of(b.m(0), b.m(1));
        Queue<Claim<FakeMember>> given = new ConcurrentLinkedQueue<>();
        Callable<Boolean> next =
            () -> {
              Claim<FakeMember> claim = b.group.inOrder(order, null).next();
              // Held until both have theirs: a trial that is cancelled is free again.
              given.add(requireNonNull(claim));
              return claim.member() == b.m(0);
            };
        int trials = Meeting.race(next, next);
        given.forEach(Claim::cancelled);
        return trials;
      }
    }
  }

  static final class End implements Callable<Integer> {
    @Override
    public Integer call() throws Exception {
      try (Bench b = new Bench(HealthPolicy.loadOnly().build(), 1)) {
        Claim<FakeMember> claim = b.pick();
        int ended = Meeting.race(claim::succeeded, claim::cancelled);
        assertThat(b.health(0).open()).isZero();
        return ended;
      }
    }
  }

  @Test
  @DisplayName("HE-12a both see the trial free, one gets it")
  void oneTrial() throws Exception {
    assertThat(INTERLEAVED.play(Trial.class)).isEqualTo(1);
  }

  @Test
  @DisplayName("HE-12a both see the claim open, one ends it")
  void oneEnd() throws Exception {
    assertThat(INTERLEAVED.play(End.class)).isEqualTo(1);
  }
}
