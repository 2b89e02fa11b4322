package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.PoolFixture.TestCall;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import dev.timebound.health.QuarantinedException;
import io.grpc.Status;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Sinks;

/** Channels that are quarantined again and again, in virtual time over fake channels. */
class ReplacementTest {
  private static final Duration OUT = Duration.ofMillis(2500);

  private PoolFixture fixture = sized(4, b -> b);

  private static PoolFixture sized(int channels, UnaryOperator<ChannelPoolBuilder> settings) {
    return new PoolFixture(b -> settings.apply(b.fixedChannels(channels).refreshing(false)));
  }

  private PoolFixture use(PoolFixture other) {
    fixture.close();
    fixture = other;
    return other;
  }

  private List<String> inService() {
    return fixture.pool.channels().stream().map(MemberHealth::name).toList();
  }

  private void quarantine(int channel, int other) {
    fixture.probes.silent();
    fixture.callOn(channel).sentAndWaiting();
    TestCall receives = fixture.callOn(other).sent();
    fixture.passWith(OUT, receives);
    assertThat(fixture.pool.group().health(PoolFixture.name(channel)))
        .extracting(h -> h == null ? null : h.status())
        .isEqualTo(MemberStatus.QUARANTINED);
    receives.transport().answer(Status.OK);
  }

  private void comesBack(int channel) {
    fixture.probes.answered();
    fixture.pass(Duration.ofSeconds(13));
    assertThat(fixture.status(channel)).isEqualTo(MemberStatus.HEALTHY);
  }

  /** Quarantined so many times, the last time still out; about 16 s each. */
  private void offends(int channel, int other, int times) {
    for (int i = 1; i < times; i++) {
      quarantine(channel, other);
      comesBack(channel);
    }
    quarantine(channel, other);
  }

  @AfterEach
  void nothingIsLeft() {
    fixture.close();
    assertThat(fixture.pool.inFlight()).isZero();
    assertThat(fixture.fakes).allMatch(FakeChannel::isShutdown);
    assertThat(fixture.pool.isTerminated()).isTrue();
  }

  @Nested
  class RepeatOffender {
    @Test
    @DisplayName(
        "BT-18 one that is quarantined 3 times in 5 minutes is replaced, once the new one has answered a probe")
    void replaced() {
      offends(1, 2, 2);
      comesBack(1);
      assertThat(fixture.fakes).as("after two").hasSize(4);
      quarantine(1, 2);
      assertThat(fixture.fakes).as("in the making").hasSize(5);
      assertThat(inService()).contains("test-1").doesNotContain("test-5");
      fixture.probes.answered();
      fixture.pass(Duration.ofSeconds(5));
      assertThat(inService()).containsExactlyInAnyOrder("test-2", "test-3", "test-4", "test-5");
      assertThat(fixture.fakes.get(0).shutdown).isTrue();
      assertThat(fixture.fakes.get(4).shutdown).isFalse();
      assertThat(fixture.pool.openChannels()).isEqualTo(4);
    }

    @Test
    @DisplayName(
        "BT-18 one that never answers is let go and the old one stays; no second in that minute")
    void unanswered() {
      use(sized(4, b -> b.probeInterval(Duration.ofSeconds(1), Duration.ofSeconds(30))));
      offends(1, 2, 3);
      assertThat(fixture.fakes).hasSize(5);
      fixture.pass(Duration.ofSeconds(12));
      assertThat(fixture.fakes.get(4).shutdownNow).isTrue();
      assertThat(inService()).contains("test-1").hasSize(4);
      fixture.pass(Duration.ofSeconds(40));
      assertThat(fixture.fakes).hasSize(5);
      assertThat(fixture.pool.openChannels()).isEqualTo(4);
    }

    @Test
    @DisplayName("BT-18 a replacement that cannot be made costs nothing: the old one stays")
    void cannotBeMade() {
      offends(1, 2, 2);
      comesBack(1);
      fixture.onMade =
          fake -> {
            throw new IllegalStateException("no channel");
          };
      quarantine(1, 2);
      assertThat(inService()).containsExactlyInAnyOrder("test-1", "test-2", "test-3", "test-4");
      comesBack(1);
      assertThat(fixture.pool.openChannels()).isEqualTo(4);
    }

    @Test
    @DisplayName("BT-18 one that does not stand out from its pool is left where it is")
    void notMoreThanTheMedian() {
      use(sized(2, b -> b));
      offends(2, 1, 2);
      comesBack(2);
      offends(1, 2, 3);
      assertThat(fixture.fakes).as("3 against 2").hasSize(2);
    }

    @Test
    @DisplayName("BT-18 replacing(false) leaves it in service")
    void off() {
      use(sized(4, b -> b.replacing(false)));
      offends(1, 2, 4);
      assertThat(fixture.fakes).hasSize(4);
    }

    @Test
    @DisplayName("BT-18 its figures are settings, and it is counted")
    void settings() {
      SimpleMeterRegistry registry = new SimpleMeterRegistry();
      use(
          sized(
              4,
              b ->
                  b.meters(registry)
                      .replacement(1, Duration.ofMinutes(1), 0, Duration.ofSeconds(1))));
      quarantine(1, 2);
      assertThat(fixture.fakes).hasSize(5);
      fixture.probes.answered();
      fixture.pass(Duration.ofSeconds(5));
      assertThat(inService()).doesNotContain("test-1");
      assertThat(
              registry
                  .get("timebound.pool.replaced")
                  .tag("reason", "offender")
                  .functionCounter()
                  .count())
          .isEqualTo(1);
    }

    @Test
    @DisplayName("BT-18 a pool closed while a replacement is in the making leaves nothing behind")
    void closedMeanwhile() {
      offends(1, 2, 3);
      assertThat(fixture.fakes).hasSize(5);
      fixture.pool.close();
      assertThat(fixture.fakes).allMatch(FakeChannel::isShutdown);
    }
  }

  @Nested
  class Dropped {
    @Test
    @DisplayName(
        "BT-19 one that was dropped while its probe ran counts no more toward the half that may be out")
    void notInTheCap() {
      use(sized(5, b -> b));
      TestCall left = fixture.callOn(1).sentAndWaiting();
      TestCall second = fixture.callOn(2).sentAndWaiting();
      TestCall receives = fixture.callOn(5).sent();
      fixture.passWith(Duration.ofMillis(1300), receives);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.SUSPECT);
      assertThat(fixture.status(2)).isEqualTo(MemberStatus.SUSPECT);
      fixture.pool.group().remove(fixture.member(1)).subscribe();
      TestCall third = fixture.callOn(3).sentAndWaiting();
      fixture.passWith(Duration.ofMillis(3500), receives);
      assertThat(fixture.status(2)).isEqualTo(MemberStatus.QUARANTINED);
      assertThat(fixture.status(3)).isEqualTo(MemberStatus.QUARANTINED);
      for (TestCall call : List.of(left, second, third)) {
        assertThat(call.ended().getCause()).isInstanceOf(QuarantinedException.class);
      }
      fixture.fakes.get(0).shutdown();
    }

    @Test
    @DisplayName(
        "BT-19 one that was dropped while it was being replaced: what was made is let go, and the next offender does not wait")
    void notTheReplacement() {
      offends(2, 3, 2);
      comesBack(2);
      offends(1, 3, 3);
      assertThat(fixture.fakes).hasSize(5);
      fixture.pool.group().remove(fixture.member(1)).subscribe();
      fixture.pass(Duration.ofMillis(10));
      assertThat(fixture.fakes.get(4).shutdownNow).isTrue();
      fixture.fakes.get(0).shutdown();
      quarantine(2, 3);
      assertThat(fixture.fakes).as("a replacement for the second").hasSize(6);
      fixture.probes.answered();
      fixture.pass(Duration.ofSeconds(5));
      assertThat(inService()).containsExactlyInAnyOrder("test-3", "test-4", "test-6");
    }

    @Test
    @DisplayName(
        "BT-19 BT-6 one that a refresh drops while its probe runs: what is left on it is failed if that fails")
    void refreshed() {
      use(new PoolFixture(b -> b.fixedChannels(2).refreshAfter(Duration.ofSeconds(40))));
      fixture.pass(Duration.ofMillis(18_500));
      TestCall left = fixture.callOn(1).sentAndWaiting();
      TestCall receives = fixture.callOn(2).sent();
      Sinks.One<String> replacement = Sinks.one();
      fixture.passWith(Duration.ofMillis(1200), receives); // suspect, its probe is silent
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.SUSPECT);
      fixture.probes.answer = replacement.asMono();
      fixture.passWith(Duration.ofMillis(400), receives); // due for its age
      assertThat(fixture.fakes).hasSize(3);
      replacement.tryEmitValue("pong");
      assertThat(inService()).containsExactlyInAnyOrder("test-2", "test-3");
      assertThat(left.closed).as("drained, not cut").isNull();
      fixture.passWith(Duration.ofMillis(1500), receives);
      assertThat(left.ended().getCause()).isInstanceOf(QuarantinedException.class);
      assertThat(fixture.fakes.get(0).shutdown).isTrue();
    }
  }
}
