package dev.timebound.health;

import static dev.timebound.health.FailureKind.CONNECTION;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class CandidatesTest {
  private final Bench b =
      new Bench(
          HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).maxQuarantined(0.5).build(),
          4);

  @AfterEach
  void nothingIsLeft() {
    b.close();
  }

  private List<String> route(FakeMember... order) {
    List<String> names = new ArrayList<>();
    Candidates<FakeMember> route = b.group.inOrder(List.of(order), null);
    for (Claim<FakeMember> c = route.next(); c != null; c = route.next()) {
      names.add(c.member().name());
      b.kept(c).cancelled();
    }
    return names;
  }

  @Test
  @DisplayName("HE-5 healthy members come in the adapter's order, each once, claimed")
  void order() {
    assertThat(route(b.m(2), b.m(0), b.m(3), b.m(1))).containsExactly("m2", "m0", "m3", "m1");
    Candidates<FakeMember> route = b.group.inOrder(List.of(b.m(1), b.m(2)), null);
    b.kept(route.next());
    assertThat(b.health(1).open()).isOne();
    assertThat(b.health(2).open()).isZero();
  }

  @Test
  @DisplayName("HE-5 suspects are skipped and come after the healthy, those out come last")
  void skipped() {
    b.on(0).failed(CONNECTION, null);
    b.on(1).failed(CONNECTION, null);
    b.on(2).failed(CONNECTION, null);
    assertThat(b.group.members())
        .extracting(MemberHealth::status)
        .containsExactly(
            MemberStatus.QUARANTINED,
            MemberStatus.QUARANTINED,
            MemberStatus.SUSPECT,
            MemberStatus.HEALTHY);
    assertThat(route(b.m(0), b.m(1), b.m(2), b.m(3))).containsExactly("m3", "m2", "m0", "m1");
  }

  @Test
  @DisplayName("HE-5 members that are not in the group are passed over")
  void strangers() {
    b.group.remove(b.m(1));
    assertThat(route(FakeMember.named("stranger"), b.m(1), b.m(0))).containsExactly("m0");
  }

  @Test
  @DisplayName("HE-12a one that goes out between two calls of next is skipped")
  void meanwhile() {
    Candidates<FakeMember> route = b.group.inOrder(List.of(b.m(0), b.m(1), b.m(2)), null);
    b.kept(route.next());
    b.on(1).failed(CONNECTION, null);
    assertThat(b.kept(route.next()).member()).isSameAs(b.m(2));
    assertThat(b.kept(route.next()).member()).isSameAs(b.m(1));
    assertThat(route.next()).isNull();
  }
}
