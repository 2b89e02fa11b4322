package dev.timebound.health;

import static dev.timebound.health.FailureKind.CONNECTION;
import static dev.timebound.health.ProbeAnswer.ANSWERED;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

/** Members that do not keep to the contract cost their group nothing. */
class OddMembersTest {
  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final HealthEngine engine = HealthEngine.builder().scheduler(time).seed(7).build();
  private final HealthGroup<Odd> group =
      engine.group(
          "g",
          HealthPolicy.consecutiveFailures(1)
              .restoredByProbe(ofSeconds(1))
              .probeInterval(ofMillis(250), ofMillis(250))
              .replaceRepeatOffenders(1, ofMinutes(5), 0, ofMinutes(1))
              .build());

  private static final class Odd implements Member {
    Supplier<@Nullable String> name;
    Supplier<@Nullable Mono<ProbeAnswer>> probe = () -> Mono.just(ANSWERED);
    Supplier<@Nullable Mono<Odd>> replacement = Mono::empty;
    final AtomicInteger discarded = new AtomicInteger();
    @Nullable Member by;
    private int replacementsAsked;

    Odd(String name) {
      this.name = () -> name;
    }

    @Override
    @SuppressWarnings("NullAway")
    public String name() {
      return name.get();
    }

    @Override
    @SuppressWarnings("NullAway")
    public Mono<ProbeAnswer> probe() {
      return probe.get();
    }

    @Override
    @SuppressWarnings("NullAway")
    public Mono<Odd> replacement() {
      // a group that asks without end would hang its test
      return ++replacementsAsked > 100 ? Mono.never() : replacement.get();
    }

    @Override
    public void replaced(Member by, Mono<Void> ended) {
      this.by = by;
      throw new IllegalStateException("replaced");
    }

    @Override
    public void discarded() {
      discarded.incrementAndGet();
      throw new IllegalStateException("discarded");
    }
  }

  private final Odd old = new Odd("old");

  private void fails(Odd member) {
    Claim<Odd> claim = group.inOrder(List.of(member), null).next();
    assertThat(claim).isNotNull();
    claim.failed(CONNECTION, null);
    time.advanceTimeBy(ofSeconds(1));
  }

  /** One that answers stands beside it; the offender goes out once. */
  private void replaceBy(Supplier<@Nullable Mono<Odd>> replacement) {
    group.add(new Odd("other"));
    old.replacement = replacement;
    group.add(old);
    fails(old);
  }

  /** As any group: the offender is back, or another is in its place, and the others go on. */
  @AfterEach
  void theGroupGoesOn() {
    time.advanceTimeBy(ofSeconds(30));
    assertThat(group.members())
        .hasSize(2)
        .allSatisfy(m -> assertThat(m.status()).isEqualTo(MemberStatus.HEALTHY));
    assertThat(group.openClaims()).isZero();
    engine.close();
    time.dispose();
  }

  private List<String> told() {
    return engine.decisions().stream()
        .filter(d -> d.action().toString().contains("REPLACE"))
        .map(d -> d.action() + " " + d.outcome())
        .toList();
  }

  @Nested
  class Replacements {
    @Test
    @DisplayName("HE-7 a new one without a name is discarded, the old one stays, and that is told")
    void blank() {
      Odd nameless = new Odd(" ");
      replaceBy(() -> Mono.just(nameless));
      assertThat(nameless.discarded).hasValue(1);
      assertThat(old.by).isNull();
      assertThat(told()).containsExactly("PREPARE_REPLACEMENT DONE", "REPLACE FAILED");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    @DisplayName("HE-7 a new one is asked for its name once; where that throws it is discarded")
    void nameThrows(int fine) {
      AtomicInteger left = new AtomicInteger(fine);
      Odd odd = new Odd("new");
      odd.name =
          () -> {
            if (left.getAndDecrement() > 0) {
              return "new";
            }
            throw new IllegalStateException("name");
          };
      replaceBy(() -> Mono.just(odd));
      assertThat(odd.discarded).hasValue(1 - fine);
      assertThat(told())
          .containsExactly(
              "PREPARE_REPLACEMENT DONE", fine == 0 ? "REPLACE FAILED" : "REPLACE DONE");
    }

    @Test
    @DisplayName("HE-7 a name that is taken: the old one stays, and that is told")
    void taken() {
      Odd same = new Odd("old");
      replaceBy(() -> Mono.just(same));
      assertThat(same.discarded).hasValue(1);
      assertThat(told()).containsExactly("PREPARE_REPLACEMENT DONE", "REPLACE FAILED");
    }

    @Test
    @DisplayName("HE-7 itself is no replacement, and is not discarded")
    void itself() {
      replaceBy(() -> Mono.just(old));
      assertThat(old.discarded).hasValue(0);
      assertThat(told()).containsExactly("PREPARE_REPLACEMENT DONE", "REPLACE FAILED");
    }

    @Test
    @DisplayName("HE-7 of two that were made one joins, the other is discarded")
    void two() {
      Odd first = new Odd("first");
      Odd second = new Odd("second");
      replaceBy(() -> Mono.fromDirect(Flux.just(first, second)));
      assertThat(old.by).isSameAs(first);
      assertThat(first.discarded.get() + second.discarded.get()).isLessThanOrEqualTo(1);
      assertThat(first.discarded).hasValue(0);
    }

    @Test
    @DisplayName("HE-7 null in place of a replacement: the old one stays, and that is told")
    void none() {
      replaceBy(() -> null);
      assertThat(told()).containsExactly("PREPARE_REPLACEMENT DONE", "REPLACE FAILED");
    }
  }

  @Nested
  class Probes {
    @Test
    @DisplayName("HE-4 a probe that is null, throws, or answers twice is one answer")
    void odd() {
      group.add(new Odd("other"));
      group.add(old);
      List<Supplier<@Nullable Mono<ProbeAnswer>>> odd =
          List.of(
              () -> null,
              () -> {
                throw new IllegalStateException("probe");
              },
              () -> Mono.fromDirect(Flux.just(ANSWERED, ANSWERED)),
              Mono::empty,
              Mono::never);
      odd.forEach(
          probe -> {
            old.probe = probe;
            fails(old);
            old.probe = () -> Mono.just(ANSWERED);
            time.advanceTimeBy(ofMinutes(6));
            MemberHealth health = group.health("old");
            assertThat(health).isNotNull();
            assertThat(health.status()).isEqualTo(MemberStatus.HEALTHY);
          });
    }
  }

  @Nested
  class Leaving {
    @Test
    @DisplayName("HE-8 one that two take out at one moment is remembered by nobody")
    void twice() {
      group.add(new Odd("other"));
      group.add(new Odd("another"));
      Roster<Odd> roster = new Roster<>("r");
      List<Slot<Odd>> slots = new ArrayList<>();
      roster.add(old, slots::add);
      Slot<Odd> slot = slots.get(0); // both have found it
      assertThat(roster.leave(slot)).isTrue();
      assertThat(roster.leaving(old)).isSameAs(slot);
      slot.go();
      roster.drained(slot);
      assertThat(roster.leave(slot)).isFalse();
      assertThat(roster.leaving(old)).isNull();
      assertThat(roster.replace(slot, new Odd("new"), "new", s -> {})).isFalse();
      assertThat(roster.leaving(old)).isNull();
      assertThat(roster.watched()).isEmpty();
    }

    @Test
    @DisplayName("HE-8 one with claims open is remembered until the last has ended, however often")
    void claimsOpen() {
      group.add(new Odd("other"));
      group.add(new Odd("another"));
      Roster<Odd> roster = new Roster<>("r");
      List<Slot<Odd>> slots = new ArrayList<>();
      roster.add(old, slots::add);
      Slot<Odd> slot = slots.get(0);
      roster.leave(slot);
      roster.leave(slot);
      assertThat(roster.leaving(old)).isSameAs(slot);
    }
  }
}
