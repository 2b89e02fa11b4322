package dev.timebound.health;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import reactor.test.scheduler.VirtualTimeScheduler;

/** An engine with one group in virtual time, members m0 … and what came of them. */
final class Bench implements AutoCloseable {
  final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  final HealthEngine engine = HealthEngine.builder().scheduler(time).seed(7).build();
  final HealthGroup<FakeMember> group;
  final List<FakeMember> members = new ArrayList<>();
  final List<Claim<FakeMember>> claims = new ArrayList<>();
  final List<HealthEvent> events = new CopyOnWriteArrayList<>();
  final List<QuarantinedException> failed = new CopyOnWriteArrayList<>();

  Bench(HealthPolicy policy, int size) {
    group = engine.group("g", policy);
    engine.events().subscribe(events::add);
    for (int i = 0; i < size; i++) {
      members.add(FakeMember.named("m" + i));
      group.add(members.get(i));
    }
  }

  FakeMember m(int i) {
    return members.get(i);
  }

  /** A claim on that very member. */
  Claim<FakeMember> on(int i) {
    FakeMember m = m(i);
    return kept(group.inOrder(List.of(m), failed::add).next());
  }

  Claim<FakeMember> pick() {
    return kept(group.pick(m -> false, failed::add));
  }

  Claim<FakeMember> kept(@Nullable Claim<FakeMember> claim) {
    claims.add(requireNonNull(claim, "nothing given"));
    return claim;
  }

  MemberStatus status(int i) {
    return health(i).status();
  }

  MemberHealth health(int i) {
    return requireNonNull(group.health(m(i).name()));
  }

  void pass(Duration d) {
    time.advanceTimeBy(d);
  }

  void pass(long millis) {
    time.advanceTimeBy(Duration.ofMillis(millis));
  }

  /** Lets time pass while the member receives something every 50 ms. */
  void passWithProgress(long millis, Claim<?>... receiving) {
    for (long t = 0; t < millis; t += 50) {
      for (Claim<?> c : receiving) {
        c.progress();
      }
      pass(Math.min(50, millis - t));
    }
  }

  /** m1: HEALTHY -> SUSPECT SILENCE, and so on. */
  List<String> changes() {
    return events.stream()
        .map(e -> e.member() + ": " + e.from() + " -> " + e.to() + " " + e.reason())
        .toList();
  }

  /** Where n picks went that were held all at once, then cancelled. */
  Map<String, Integer> picks(int n) {
    Map<String, Integer> count = new TreeMap<>();
    List<Claim<FakeMember>> made = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      made.add(pick());
      count.merge(made.get(i).member().name(), 1, Integer::sum);
    }
    made.forEach(Claim::cancelled);
    return count;
  }

  /** Ends what is open and looks whether anything is left. */
  @Override
  public void close() {
    claims.forEach(Claim::cancelled);
    assertThat(group.openClaims()).as("open claims").isZero();
    assertThat(group.members()).allSatisfy(m -> assertThat(m.open()).isZero());
    engine.close();
    assertThat(members).allSatisfy(m -> assertThat(m.running).as("probes of " + m).isZero());
    time.dispose();
  }
}
