package dev.timebound.grpc;

import static io.grpc.ConnectivityState.CONNECTING;
import static io.grpc.ConnectivityState.IDLE;
import static io.grpc.ConnectivityState.READY;
import static io.grpc.ConnectivityState.TRANSIENT_FAILURE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.PoolFixture.TestCall;
import dev.timebound.health.MemberHealth;
import io.grpc.Status;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Channels that do not get connected, in virtual time over fake channels. */
class ConnectGuardTest {
  private PoolFixture fixture = new PoolFixture(b -> b.fixedChannels(3).refreshing(false));

  private PoolFixture use(PoolFixture other) {
    fixture.close();
    fixture = other;
    return other;
  }

  private List<String> inService() {
    return fixture.pool.channels().stream().map(MemberHealth::name).toList();
  }

  private FakeChannel first() {
    return fixture.fakes.get(0);
  }

  /** How many of some calls go to the first channel. */
  private int ofThirty() {
    int there = 0;
    for (int i = 0; i < 30; i++) {
      there += fixture.call().channel() == 1 ? 1 : 0;
    }
    return there;
  }

  @AfterEach
  void nothingIsLeft() {
    fixture.close();
    assertThat(fixture.pool.inFlight()).isZero();
    assertThat(fixture.pool.isTerminated()).isTrue();
    assertThat(fixture.fakes).allMatch(FakeChannel::isShutdown);
  }

  @Test
  @DisplayName("BT-44 a channel that is CONNECTING for 5 s is avoided, and no sooner")
  void avoided() {
    first().becomes(CONNECTING);
    fixture.pass(Duration.ofMillis(4900));
    assertThat(ofThirty()).isEqualTo(10);
    fixture.pass(Duration.ofMillis(200));
    assertThat(ofThirty()).isZero();
  }

  @Test
  @DisplayName(
      "BT-44 stuck CONNECTING for 20 minutes: it is replaced once a new one has answered, and what waits on it is told")
  void replaced() {
    Sinks.One<String> answer = Sinks.one();
    fixture.probes.answer = answer.asMono();
    first().becomes(CONNECTING);
    TestCall waits = fixture.callOn(1);
    fixture.pass(Duration.ofMillis(5100));
    assertThat(fixture.fakes).hasSize(4);
    assertThat(inService()).as("until the new one has answered").contains("test-1");
    assertThat(waits.closed).isNull();
    answer.tryEmitValue("pong");
    assertThat(inService()).containsExactlyInAnyOrder("test-2", "test-3", "test-4");
    assertThat(waits.ended().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
    fixture.pass(Duration.ofMinutes(20));
    assertThat(fixture.fakes).hasSize(4);
  }

  @Test
  @DisplayName("BT-44 a channel of another make, which tells no state, is used all the same")
  void tellsNothing() {
    use(
        new PoolFixture(
            b -> b.fixedChannels(2).warming(true).refreshAfter(Duration.ofMinutes(1)),
            fake -> fake.tellsNoState = true));
    fixture.probes.answer = Mono.just("alive");
    fixture.pass(Duration.ofMinutes(2));
    assertThat(fixture.fakes).as("refreshed").hasSizeGreaterThan(3);
    assertThat(fixture.call().channel()).isPositive();
  }

  @Test
  @DisplayName("BT-44 failed attempts and the pauses between them count as one")
  void transientFailure() {
    fixture.probes.answered();
    first().becomes(CONNECTING);
    fixture.pass(Duration.ofSeconds(2));
    first().becomes(TRANSIENT_FAILURE);
    fixture.pass(Duration.ofSeconds(2));
    first().becomes(CONNECTING);
    assertThat(inService()).contains("test-1");
    fixture.pass(Duration.ofMillis(1100));
    assertThat(inService()).doesNotContain("test-1").hasSize(3);
  }

  @Test
  @DisplayName("BT-44 one that gets connected, or has nothing to connect for, is left alone")
  void connects() {
    fixture.probes.answered();
    for (int i = 0; i < 10; i++) {
      first().becomes(CONNECTING);
      fixture.pass(Duration.ofMillis(4900));
      first().becomes(i % 2 == 0 ? READY : IDLE);
      fixture.pass(Duration.ofSeconds(10));
    }
    assertThat(fixture.fakes).hasSize(3);
    assertThat(ofThirty()).isEqualTo(10);
  }

  @Test
  @DisplayName(
      "BT-44 one that gets connected while its replacement is warmed stays, with its calls")
  void connectsMeanwhile() {
    Sinks.One<String> answer = Sinks.one();
    fixture.probes.answer = answer.asMono();
    first().becomes(CONNECTING);
    TestCall waits = fixture.callOn(1);
    fixture.pass(Duration.ofMillis(5100));
    first().becomes(READY);
    answer.tryEmitValue("pong");
    assertThat(inService()).containsExactlyInAnyOrder("test-1", "test-2", "test-3");
    assertThat(fixture.fakes.get(3).shutdownNow).isTrue();
    assertThat(waits.closed).isNull();
    waits.transport().answer(Status.OK);
    assertThat(ofThirty()).isEqualTo(10);
  }

  @Test
  @DisplayName(
      "BT-44 with none connected calls are still taken, and one replacement at a time is tried, less and less often")
  void noneConnects() {
    fixture.probes.silent();
    fixture.onMade = fake -> fake.becomes(CONNECTING);
    fixture.fakes.forEach(fake -> fake.becomes(CONNECTING));
    for (int i = 0; i < 60; i++) {
      fixture.pass(Duration.ofSeconds(10));
      assertThat(fixture.pool.openChannels()).isLessThanOrEqualTo(4);
    }
    assertThat(inService()).containsExactlyInAnyOrder("test-1", "test-2", "test-3");
    assertThat(fixture.fakes.size()).as("in 10 minutes").isBetween(8, 20);
    assertThat(fixture.call().channel()).isBetween(1, 3);
    fixture.onMade = fake -> {};
    fixture.probes.answered();
    fixture.pass(Duration.ofMinutes(2));
    assertThat(inService()).doesNotContain("test-1", "test-2", "test-3").hasSize(3);
  }

  @Test
  @DisplayName("BT-44 BT-35 a retry that avoids the only connected channel goes there all the same")
  void onlyTheFailedOneIsConnected() {
    first().becomes(CONNECTING);
    fixture.fakes.get(1).becomes(CONNECTING);
    fixture.pass(Duration.ofMillis(5100));
    for (int i = 0; i < 20; i++) {
      assertThat(fixture.call("test-3").channel()).isEqualTo(3);
    }
    assertThat(fixture.pool.inFlight()).isEqualTo(20);
    assertThat(fixture.pool.group().openClaims()).isEqualTo(20);
  }

  @Test
  @DisplayName("BT-44 connectChecks(false) leaves it in the choice")
  void off() {
    use(new PoolFixture(b -> b.fixedChannels(3).connectChecks(false)));
    first().becomes(CONNECTING);
    fixture.pass(Duration.ofMinutes(5));
    assertThat(fixture.fakes).hasSize(3);
    assertThat(ofThirty()).isEqualTo(10);
  }

  @Test
  @DisplayName("BT-44 what is not connected, and what was replaced for it, is counted")
  void meters() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    use(new PoolFixture(b -> b.fixedChannels(3).meters(registry)));
    first().becomes(CONNECTING);
    fixture.pass(Duration.ofMillis(5100));
    assertThat(registry.get("timebound.pool.unconnected").gauge().value()).isEqualTo(1);
    fixture.probes.answered();
    fixture.pass(Duration.ofMinutes(2));
    assertThat(registry.get("timebound.pool.unconnected").gauge().value()).isZero();
    assertThat(
            registry
                .get("timebound.pool.replaced")
                .tag("reason", "unconnected")
                .functionCounter()
                .count())
        .isEqualTo(1);
  }
}
