package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.HealthEngine;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-30 PG-31 PG-11a readers are members of the health engine")
class RoutedHealthTest {
  private static final String WHERE = "SELECT pg_is_in_recovery()";

  private final PostgresReplicaSet servers;
  private final HealthEngine engine = HealthEngine.builder().build();
  private final List<String> changes = new CopyOnWriteArrayList<>();
  private Routed routed;

  RoutedHealthTest(PostgresReplicaSet servers) {
    this.servers = servers;
    engine.events().subscribe(e -> changes.add(e.from() + " -> " + e.to() + " " + e.reason()));
    this.routed = Routed.on(servers, settings -> settings.healthEngine(engine)).warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
    assertThat(engine.groups()).isEmpty();
    engine.close();
  }

  private MemberStatus status() {
    return routed.db.readers().iterator().next().status();
  }

  /** Reads at once, so many. */
  private List<String> readAtOnce(int reads) {
    return requireNonNull(
        Flux.range(0, reads)
            .flatMap(i -> routed.db.read(rows(WHERE)), reads)
            .collectList()
            .block(Routed.BOUND));
  }

  private Flux<String> sleepers(String seconds) {
    return Flux.range(0, 4)
        .flatMap(i -> routed.db.read(rows("SELECT pg_sleep(" + seconds + ")::text")), 4);
  }

  /** All that the pool may hold are dialled, and idle. */
  private void allFour() {
    sleepers("0.2").blockLast(Routed.BOUND);
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    assertThat(routed.gauge("timebound.pg.pool.idle")).isEqualTo(4);
  }

  @Test
  @DisplayName(
      "PG-30 three proof timeouts put a reader out; reads skip it at once; an answer restores")
  void out() {
    routed.reader.freezeAll();
    assertThat(readAtOnce(3)).containsOnly("false");
    eventually(() -> assertThat(status()).isEqualTo(MemberStatus.QUARANTINED));
    assertThat(routed.read(WHERE)).containsExactly("false");
    eventually(() -> assertThat(routed.routes()).contains("writer reader_quarantined: "));
    routed.reader.heal();
    eventually(() -> assertThat(routed.read(WHERE)).containsExactly("true"));
    eventually(
        () ->
            assertThat(changes)
                .containsExactly(
                    "HEALTHY -> QUARANTINED FAILURES", "QUARANTINED -> HEALTHY PROBE_ANSWERED"));
  }

  @Test
  @DisplayName("PG-30 a pool of two gets there too: acquires that wait for a dial that hangs count")
  void poolOfTwo() {
    routed.close();
    routed = Routed.on(servers, settings -> settings.healthEngine(engine).readerMaxSize(2)).warm();
    routed.reader.freezeAll();
    for (int i = 0; status() != MemberStatus.QUARANTINED; i++) {
      assertThat(i).as("rounds until it is out").isLessThan(10);
      assertThat(readAtOnce(6)).containsOnly("false");
    }
  }

  @Test
  @DisplayName("PG-30 acquires that wait because the pool is busy say nothing of the reader")
  void busy() {
    routed.close();
    routed =
        Routed.on(servers, settings -> settings.healthEngine(engine).acquireTimeout(ofMillis(300)))
            .warm();
    eventually(this::allFour); // so that nobody waits for a dial
    Mono<List<String>> long4 = sleepers("2").collectList();
    Mono<List<String>> others =
        Mono.delay(ofMillis(200))
            .thenMany(Flux.range(0, 8).flatMap(i -> routed.db.read(rows(WHERE)), 8))
            .collectList();
    assertThat(requireNonNull(Mono.zip(long4, others).block(Routed.BOUND)).getT2()).hasSize(8);
    assertThat(status()).isEqualTo(MemberStatus.HEALTHY);
    assertThat(changes).isEmpty();
  }

  @Test
  @DisplayName("PG-30 the caller's own deadline says nothing of the reader")
  void callersDeadline() {
    routed.reader.freezeAll();
    for (int i = 0; i < 5; i++) {
      assertThat(
              routed
                  .db
                  .readMono(rows(WHERE))
                  .timeout(ofMillis(100))
                  .onErrorReturn("late")
                  .block(Routed.BOUND))
          .isEqualTo("late");
    }
    assertThat(changes).isEmpty();
  }

  @Test
  @DisplayName(
      "PG-11a a read that waits for its first row is taken to the writer when its reader goes out")
  void beforeTheFirstRow() {
    Mono<String> slow =
        routed
            .db
            .readMono(
                rows(
                    "SELECT CASE WHEN pg_is_in_recovery() THEN pg_sleep(60)::text ELSE 'writer' END"))
            .cache();
    slow.subscribe();
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isOne());
    eventually(() -> assertThat(routed.sessions(servers.standby())).anyMatch(s -> s.isRunning()));
    routed.reader.freezeAll();
    assertThat(readAtOnce(3)).containsOnly("false");
    assertThat(slow.block(ofSeconds(15))).isEqualTo("writer");
    eventually(() -> assertThat(routed.closed(CloseReason.CANCELLED)).isOne());
  }

  @Test
  @DisplayName("PG-31 established sessions stalled, new ones get through: one proof timeout each")
  void stalledSessions() {
    eventually(this::allFour);
    routed.reader.freezeEstablished();
    long began = System.nanoTime();
    eventually(() -> assertThat(readAtOnce(2)).containsOnly("true"));
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(ofSeconds(15));
    assertThat(routed.closed(CloseReason.OPEN_TRANSACTION)).isBetween(1, 4);
  }

  @Test
  @DisplayName("PG-30 of several readers the least loaded that is in service serves")
  void several() {
    SimpleMeterRegistry meters = new SimpleMeterRegistry();
    try (RoutedDatabase two =
        RoutedDatabase.builder()
            .writer(routed.writerPool)
            .reader("a", c -> routed.to(c, routed.reader))
            .reader("b", c -> routed.to(c, routed.writer))
            .meters(meters)
            .build()
            .start()) {
      eventually(
          () ->
              assertThat(meters.find("timebound.pg.pool.idle").gauges())
                  .hasSize(2)
                  .allMatch(g -> g.value() == 2));
      Mono<List<String>> atOnce =
          Flux.range(0, 4)
              .flatMap(i -> two.read(rows("SELECT pg_is_in_recovery() FROM pg_sleep(0.3)")), 4)
              .collectList();
      assertThat(atOnce.block(Routed.BOUND))
          .containsExactlyInAnyOrder("true", "true", "false", "false");
      routed.reader.freezeAll();
      for (int i = 0; i < 12; i++) {
        assertThat(two.read(rows(WHERE)).blockLast(Routed.BOUND)).isEqualTo("false");
      }
      routed.reader.heal();
      eventually(
          () ->
              assertThat(
                      Flux.range(0, 8)
                          .flatMap(i -> two.read(rows(WHERE)), 8)
                          .collectList()
                          .block(Routed.BOUND))
                  .contains("true"));
    }
  }
}
