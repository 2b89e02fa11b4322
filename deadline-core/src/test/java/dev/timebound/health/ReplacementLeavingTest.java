package dev.timebound.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** Who leaves while it is being replaced, and the old one once it is. */
class ReplacementLeavingTest {
  @Test
  @DisplayName("BT-19 one that leaves while its replacement is prepared is not the one in progress")
  void leaves() {
    try (OffenderPool p = new OffenderPool(6)) {
      p.freshAnswer = false;
      p.out(1, 3);
      FakeMember unwanted = p.made.get(0);
      p.b.group.remove(p.b.m(1));
      assertThat(unwanted.discarded).isEqualTo(1);
      assertThat(unwanted.running).as("its probe is cancelled").isZero();
      p.freshAnswer = true;
      p.out(2, 3);
      assertThat(p.names()).containsExactly("m0", "n2", "m3", "m4", "m5");
      assertThat(p.b.m(1).replacedBy).isNull();
    }
  }

  @Test
  @DisplayName("BT-19 one made after its old one has left is discarded")
  void madeTooLate() {
    try (OffenderPool p = new OffenderPool(4)) {
      FakeMember late = FakeMember.named("late");
      // such a source gives what it has made though it was cancelled
      p.b.m(1).replacement =
          () ->
              Mono.from(
                  s -> {
                    s.onSubscribe(reactor.core.publisher.Operators.emptySubscription());
                    made =
                        () -> {
                          s.onNext(late);
                          s.onComplete();
                        };
                  });
      p.out(1, 3);
      p.b.group.remove(p.b.m(1));
      made.run();
      assertThat(late.discarded).isEqualTo(1);
      assertThat(p.names()).containsExactly("m0", "m2", "m3");
    }
  }

  private Runnable made = () -> {};

  @Test
  @DisplayName("HE-7 the old one's open requests run on, and it hears when the last has ended")
  void drains() {
    try (OffenderPool p = new OffenderPool(4)) {
      // without a fail handle a quarantine leaves it
      Claim<FakeMember> open = p.b.kept(p.b.group.inOrder(List.of(p.b.m(1)), null).next());
      p.out(1, 3);
      assertThat(p.b.m(1).replacedBy).isNotNull();
      assertThat(p.b.m(1).ended).isFalse();
      assertThat(open.isEnded()).isFalse();
      assertThat(p.b.group.openClaims()).as("counted on").isEqualTo(1);
      open.succeeded();
      assertThat(p.b.m(1).ended).isTrue();
      assertThat(p.b.group.openClaims()).isZero();
    }
  }

  @Test
  @DisplayName("HE-7 what is being prepared is discarded when the group goes")
  void closed() {
    try (OffenderPool p = new OffenderPool(4)) {
      p.freshAnswer = false;
      p.out(1, 3);
      p.b.engine.remove(p.b.group);
      assertThat(p.made.get(0).discarded).isEqualTo(1);
      assertThat(p.made.get(0).running).isZero();
    }
  }
}
