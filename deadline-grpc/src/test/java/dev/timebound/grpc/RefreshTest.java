package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.PoolFixture.TestCall;
import dev.timebound.health.MemberHealth;
import io.grpc.Metadata;
import io.grpc.Status;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Channels replaced for their age, in virtual time over fake channels. */
class RefreshTest {
  private static final Duration AGE = Duration.ofMinutes(60);

  private PoolFixture fixture =
      new PoolFixture(b -> b.fixedChannels(4).refreshAfter(AGE).warmTimeout(Duration.ofSeconds(5)));

  private PoolFixture use(PoolFixture other) {
    fixture.close();
    fixture = other;
    return other;
  }

  private List<String> inService() {
    return fixture.pool.channels().stream().map(MemberHealth::name).toList();
  }

  private long shutDown() {
    return fixture.fakes.stream().filter(fake -> fake.shutdown).count();
  }

  @AfterEach
  void nothingIsLeft() {
    fixture.close();
    assertThat(fixture.pool.inFlight()).isZero();
    assertThat(fixture.fakes).allMatch(FakeChannel::isShutdown);
    assertThat(fixture.pool.isTerminated()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5})
  @DisplayName("BT-6 for a day no channel comes to its age, and no two go in one minute")
  void neverAllAtOnce(long seed) {
    Random random = new Random(seed);
    int size = 1 + random.nextInt(12);
    use(new PoolFixture(b -> b.fixedChannels(size).refreshAfter(AGE).random(random::nextDouble)));
    fixture.probes.answered();
    List<Integer> born = new ArrayList<>();
    for (int minute = 0; minute < 24 * 60; minute++) {
      long before = shutDown();
      fixture.pass(Duration.ofMinutes(1));
      assertThat(shutDown() - before).as("minute %s", minute).isLessThanOrEqualTo(1);
      while (born.size() < fixture.fakes.size()) {
        born.add(born.size() < size ? 0 : minute);
      }
      for (int i = 0; i < born.size(); i++) {
        if (!fixture.fakes.get(i).shutdown) {
          assertThat(minute - born.get(i)).as("age of %s", i + 1).isLessThanOrEqualTo(60);
        }
      }
      assertThat(inService()).hasSize(size);
    }
    assertThat(fixture.fakes.size()).as("refreshed once an age").isBetween(24 * size, 28 * size);
  }

  @Test
  @DisplayName(
      "BT-6 a replacement takes no call before it has answered a probe, the old one until then")
  void warmedFirst() {
    Sinks.One<String> answer = Sinks.one();
    fixture.probes.answer = answer.asMono();
    fixture.pass(Duration.ofMinutes(15));
    assertThat(fixture.fakes).hasSize(5);
    assertThat(inService()).hasSize(4).contains("test-1").doesNotContain("test-5");
    answer.tryEmitValue("pong");
    assertThat(inService()).hasSize(4).contains("test-5").doesNotContain("test-1");
    assertThat(fixture.fakes.get(0).shutdown).isTrue();
  }

  @Test
  @DisplayName("BT-6 BT-5 the one that goes finishes its open calls first")
  void drains() {
    fixture.probes.answered();
    TestCall open = fixture.callOn(1).sent();
    fixture.pass(Duration.ofMinutes(20));
    assertThat(inService()).doesNotContain("test-1");
    assertThat(fixture.fakes.get(0).shutdown).isFalse();
    assertThat(open.closed).isNull();
    open.transport().answer(Status.OK);
    assertThat(open.ended()).isEqualTo(Status.OK);
    assertThat(fixture.fakes.get(0).shutdown).isTrue();
    assertThat(fixture.fakes.get(0).shutdownNow).isFalse();
  }

  @Test
  @DisplayName(
      "BT-6 where no replacement can be warmed the old ones stay, and it is tried again now and then")
  void cannotBeWarmed() {
    fixture.probes.connectionFails();
    fixture.pass(Duration.ofHours(2));
    assertThat(inService()).containsExactlyInAnyOrder("test-1", "test-2", "test-3", "test-4");
    assertThat(fixture.pool.openChannels()).isEqualTo(4);
    assertThat(fixture.fakes.size()).as("a minute apart").isBetween(60, 120);
    fixture.probes.answered();
    fixture.pass(Duration.ofMinutes(2));
    assertThat(inService()).doesNotContain("test-1", "test-2", "test-3", "test-4").hasSize(4);
  }

  @Test
  @DisplayName("BT-6 a replacement that never answers, or whose credentials never come, is let go")
  void neverAnswers() {
    fixture.probes.silent();
    fixture.pass(Duration.ofMinutes(15).plusSeconds(6));
    assertThat(fixture.fakes).hasSize(5);
    assertThat(fixture.fakes.get(4).shutdownNow).isTrue();
    assertThat(inService()).contains("test-1").hasSize(4);
    fixture.probes.credentials = Mono.error(new IllegalStateException("no token"));
    fixture.pass(Duration.ofSeconds(10));
    assertThat(fixture.fakes).hasSize(6);
    assertThat(fixture.fakes.get(5).shutdownNow).isTrue();
    fixture.probes.credentials = Mono.fromSupplier(Metadata::new);
  }

  @Test
  @DisplayName("BT-6 the old one left meanwhile: its replacement is not wanted")
  void leftMeanwhile() {
    Sinks.One<String> answer = Sinks.one();
    fixture.probes.answer = answer.asMono();
    fixture.pass(Duration.ofMinutes(15));
    fixture.pool.group().remove(fixture.member(1)).subscribe();
    answer.tryEmitValue("pong");
    assertThat(inService()).containsExactlyInAnyOrder("test-2", "test-3", "test-4");
    assertThat(fixture.fakes.get(4).shutdownNow).isTrue();
    fixture.fakes.get(0).shutdownNow();
  }

  @Test
  @DisplayName("BT-6 a pool that closes while a replacement is being warmed leaves nothing behind")
  void closedMeanwhile() {
    fixture.probes.silent();
    fixture.pass(Duration.ofMinutes(15));
    assertThat(fixture.fakes).hasSize(5);
    fixture.pool.close();
    assertThat(fixture.fakes).allMatch(FakeChannel::isShutdown);
    assertThat(fixture.probes.cancelled).isEqualTo(1);
  }

  @Test
  @DisplayName("BT-6 a factory that throws costs the pool nothing")
  void cannotBeMade() {
    fixture.probes.answered();
    fixture.onMade =
        fake -> {
          throw new IllegalStateException("no channel");
        };
    fixture.pass(Duration.ofMinutes(30));
    assertThat(inService()).containsExactlyInAnyOrder("test-1", "test-2", "test-3", "test-4");
    fixture.onMade = fake -> {};
    fixture.pass(Duration.ofMinutes(30));
    assertThat(inService()).doesNotContain("test-1", "test-2");
  }

  @Test
  @DisplayName("BT-6 refreshing(false) leaves channels as old as they get")
  void off() {
    use(new PoolFixture(b -> b.fixedChannels(4).refreshAfter(AGE).refreshing(false)));
    fixture.probes.answered();
    fixture.pass(Duration.ofHours(5));
    assertThat(fixture.fakes).hasSize(4);
  }

  @Test
  @DisplayName("BT-6 what was replaced and what could not be is counted")
  void meters() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    use(new PoolFixture(b -> b.fixedChannels(4).refreshAfter(AGE).meters(registry)));
    fixture.probes.answered();
    fixture.pass(Duration.ofMinutes(30));
    assertThat(
            registry.get("timebound.pool.replaced").tag("reason", "age").functionCounter().count())
        .isEqualTo(2);
    fixture.probes.connectionFails();
    fixture.pass(Duration.ofMinutes(15));
    assertThat(registry.get("timebound.pool.replacements.failed").functionCounter().count())
        .isPositive();
    fixture.pool.close();
    assertThat(registry.getMeters()).isEmpty();
  }
}
