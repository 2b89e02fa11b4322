package dev.timebound.health;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import reactor.test.scheduler.VirtualTimeScheduler;

/** An engine with one group in virtual time, members m0 … and what came of them. */
final class Bench implements AutoCloseable {
  final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  final HealthEngine engine = HealthEngine.builder().scheduler(time).seed(7).build();
  final HealthGroup<FakeMember> group;
  final List<FakeMember> members = new ArrayList<>();
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
    return requireNonNull(
        group.inOrder(List.of(m), failed::add).next(), () -> "nothing given of " + m);
  }

  Claim<FakeMember> pick() {
    return requireNonNull(group.pick(m -> false, failed::add), "nothing picked");
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

  Map<String, Integer> picks(int n) {
    Map<String, Integer> count = new TreeMap<>();
    for (int i = 0; i < n; i++) {
      count.merge(pick().member().name(), 1, Integer::sum);
    }
    return count;
  }

  @Override
  public void close() {
    engine.close();
    time.dispose();
  }
}
