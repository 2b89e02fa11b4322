package dev.timebound.health;

import static dev.timebound.health.FailureKind.CONNECTION;
import static dev.timebound.health.ProbeAnswer.ANSWERED;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import reactor.core.publisher.Mono;

/** Members that answer probes, of which m0 may be replaced by "n0", and so on. */
final class OffenderPool implements AutoCloseable {
  static HealthPolicy.Builder restored() {
    return HealthPolicy.consecutiveFailures(1)
        .restoredByProbe(ofSeconds(1))
        .probeInterval(ofMillis(250), ofMillis(250))
        .replaceRepeatOffenders(3, ofMinutes(5), 2, ofMinutes(1));
  }

  final Bench b;
  final List<FakeMember> made = new ArrayList<>();
  boolean freshAnswer = true;

  OffenderPool(int size) {
    this(size, restored().build());
  }

  OffenderPool(int size, HealthPolicy policy) {
    b = new Bench(policy, size);
    b.members.forEach(
        m -> {
          m.answers(ANSWERED);
          m.replacement = () -> Mono.fromSupplier(() -> fresh("n" + m.name().substring(1)));
        });
  }

  FakeMember fresh(String name) {
    FakeMember fresh = FakeMember.named(name);
    if (freshAnswer) {
      fresh.answers(ANSWERED);
    }
    made.add(fresh);
    return fresh;
  }

  /** Out, and back after a second at most. */
  void out(int i, int times) {
    for (int n = 0; n < times; n++) {
      b.on(i).failed(CONNECTION, null);
      b.pass(ofSeconds(1));
    }
  }

  List<String> names() {
    return b.group.members().stream().map(MemberHealth::name).toList();
  }

  List<HealthReason> told(String member) {
    return b.events.stream()
        .filter(e -> e.member().equals(member) && e.from() == e.to())
        .map(HealthEvent::reason)
        .toList();
  }

  @Override
  public void close() {
    b.close();
    assertThat(made).allSatisfy(m -> assertThat(m.running).as("probes of " + m).isZero());
  }
}
