package dev.timebound.health;

import static dev.timebound.health.FailureKind.CONNECTION;
import static java.time.Duration.ofSeconds;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.BaseSubscriber;
import reactor.test.StepVerifier;
import reactor.test.scheduler.VirtualTimeScheduler;

class EventsTest {
  private static final HealthPolicy POLICY =
      HealthPolicy.consecutiveFailures(1).cooldown(ofSeconds(5)).penalty(25, ofSeconds(5)).build();

  private static void flap(Bench b, int times) {
    for (int i = 0; i < times; i++) {
      b.on(0).failed(CONNECTION, new IllegalStateException("refused"));
      b.on(0).succeeded();
    }
  }

  @Nested
  class Listeners {
    @Test
    @DisplayName("HE-9 an event says who, from, to, why and when")
    void content() {
      try (Bench b = new Bench(POLICY, 2)) {
        b.pass(ofSeconds(90));
        b.on(1).failed(CONNECTION, new IllegalStateException("refused"));
        assertThat(b.events)
            .containsExactly(
                new HealthEvent(
                    "g",
                    "m1",
                    MemberStatus.HEALTHY,
                    MemberStatus.QUARANTINED,
                    HealthReason.FAILURES,
                    "1 connection failures in a row, last: java.lang.IllegalStateException:"
                        + " refused",
                    false,
                    Instant.ofEpochSecond(90)));
      }
    }

    @Test
    @DisplayName("HE-9 a listener that throws ends its own subscription and nothing else")
    void throwing() {
      try (Bench b = new Bench(POLICY, 2)) {
        AtomicInteger seen = new AtomicInteger();
        b.engine
            .events()
            .subscribe(
                e -> {
                  seen.incrementAndGet();
                  throw new IllegalStateException("listener");
                },
                error -> {});
        flap(b, 5);
        assertThat(seen).hasValue(1);
        assertThat(b.events).hasSize(10);
        assertThat(b.status(0)).isEqualTo(MemberStatus.HEALTHY);
      }
    }

    @Test
    @DisplayName("HE-9 one that does not ask loses its oldest events, the others lose none")
    void slow() {
      try (Bench b = new Bench(POLICY, 2)) {
        List<HealthEvent> slow = new ArrayList<>();
        BaseSubscriber<HealthEvent> subscriber =
            new BaseSubscriber<>() {
              @Override
              protected void hookOnSubscribe(Subscription s) {}

              @Override
              protected void hookOnNext(HealthEvent e) {
                slow.add(e);
              }
            };
        b.engine.events().subscribe(subscriber);
        flap(b, 500);
        assertThat(b.events).hasSize(1000);
        subscriber.requestUnbounded();
        assertThat(slow).hasSizeBetween(200, 300);
        assertThat(slow.get(slow.size() - 1)).isEqualTo(b.events.get(999));
      }
    }

    @Test
    @DisplayName("HE-9 the events complete when the engine is closed")
    void completes() {
      Bench b = new Bench(POLICY, 2);
      StepVerifier.create(b.engine.events()).then(b.engine::close).verifyComplete();
    }

    @Test
    @DisplayName("HE-9 a change to or from quarantine is logged, with the figure that led to it")
    void logged() {
      Logger logger = (Logger) LoggerFactory.getLogger(HealthEngine.class);
      ListAppender<ILoggingEvent> lines = new ListAppender<>();
      lines.start();
      logger.addAppender(lines);
      Level before = logger.getLevel();
      logger.setLevel(Level.INFO);
      logger.setAdditive(false);
      try (Bench b = new Bench(POLICY, 2)) {
        b.on(0).failed(CONNECTION, null);
        b.pass(ofSeconds(5));
        b.pick().succeeded();
      } finally {
        logger.detachAppender(lines);
        logger.setLevel(before);
        logger.setAdditive(true);
      }
      assertThat(lines.list)
          .extracting(ILoggingEvent::getFormattedMessage)
          .containsExactly(
              "health g/m0: HEALTHY -> QUARANTINED, 1 connection failures in a row, last: null (group: median of"
                  + " 0 failures in a row, 1 of 2 suspect or out)",
              "health g/m0: QUARANTINED -> HALF_OPEN, out for PT5S (group: median of 0 failures in"
                  + " a row, 1 of 2 suspect or out)");
    }
  }

  @Nested
  class Meters {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    @Test
    @DisplayName("HE-9 members, open claims, transitions, probes and penalties are metered")
    void metered() {
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      HealthEngine engine = HealthEngine.builder().scheduler(time).meters(registry).build();
      HealthGroup<FakeMember> g =
          engine.group(
              "g",
              HealthPolicy.consecutiveFailures(1)
                  .confirmedByProbe(ofSeconds(1))
                  .penalty(25, ofSeconds(5))
                  .build());
      FakeMember m = FakeMember.named("m");
      g.add(m);
      g.add(FakeMember.named("n"));
      assertThat(gauge("members", "status", "healthy")).isEqualTo(2);
      Claim<FakeMember> open = requireNonNull(g.inOrder(List.of(m), null).next());
      assertThat(registry.get("timebound.health.open").tag("group", "g").gauge().value())
          .isEqualTo(1);
      open.failed(CONNECTION, null);
      time.advanceTimeBy(Duration.ofMillis(1500));
      assertThat(gauge("members", "status", "healthy")).isEqualTo(1);
      assertThat(gauge("members", "status", "quarantined")).isEqualTo(1);
      assertThat(
              registry
                  .get("timebound.health.transitions")
                  .tags(
                      "group",
                      "g",
                      "from",
                      "suspect",
                      "to",
                      "quarantined",
                      "reason",
                      "probe_timed_out")
                  .counter()
                  .count())
          .isEqualTo(1);
      assertThat(
              registry
                  .get("timebound.health.probes")
                  .tags("group", "g", "outcome", "timed_out")
                  .counter()
                  .count())
          .isEqualTo(1);
      assertThat(registry.get("timebound.health.penalties").tags("group", "g").counter().count())
          .isEqualTo(1);
      engine.close();
      assertThat(registry.getMeters())
          .extracting(meter -> meter.getId().getType())
          .doesNotContain(Meter.Type.GAUGE);
    }

    @Test
    @DisplayName("HE-9 two engines on one registry: each group has its meters, and takes its own")
    void twoEngines() {
      HealthEngine one = HealthEngine.builder().meters(registry).build();
      HealthEngine two = HealthEngine.builder().meters(registry).build();
      one.group("g", POLICY).add(FakeMember.named("m"));
      HealthGroup<FakeMember> second = two.group("g", POLICY);
      second.add(FakeMember.named("m"));
      second.add(FakeMember.named("n"));
      assertThat(gauge("members", "status", "healthy")).isEqualTo(1);
      assertThat(healthyOf("g#2")).isEqualTo(2);
      two.remove(second);
      assertThat(registry.find("timebound.health.open").tag("group", "g#2").gauge()).isNull();
      assertThat(gauge("members", "status", "healthy")).isEqualTo(1);
      two.group("g", POLICY);
      assertThat(healthyOf("g#2")).isZero();
      one.close();
      assertThat(registry.find("timebound.health.open").tag("group", "g").gauge()).isNull();
      assertThat(healthyOf("g#2")).isZero();
      two.close();
      assertThat(registry.find("timebound.health.open").gauges()).isEmpty();
    }

    private double healthyOf(String group) {
      return registry
          .get("timebound.health.members")
          .tags("group", group, "status", "healthy")
          .gauge()
          .value();
    }

    private double gauge(String name, String key, String value) {
      return registry
          .get("timebound.health." + name)
          .tags("group", "g", key, value)
          .gauge()
          .value();
    }
  }
}
