package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static java.time.Duration.ofMillis;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresSession;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-13 PG-16 PG-19 a read that is given up leaves nothing behind")
class RoutedCancelTest {
  private final PostgresReplicaSet servers;
  private final Routed routed;

  RoutedCancelTest(PostgresReplicaSet servers) {
    this.servers = servers;
    this.routed = Routed.on(servers);
  }

  @BeforeEach
  void warm() {
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private List<PostgresSession> running() {
    return routed.sessions(servers.standby()).stream()
        // not the proof's
        .filter(session -> session.isRunning() && session.query().contains("pg_sleep"))
        .toList();
  }

  @Test
  @DisplayName("PG-13 the caller's deadline ends a read, and its statement on the server")
  void deadline() {
    Mono<String> slow = routed.db.readMono(rows("SELECT pg_sleep(60)::text"));
    assertThatThrownBy(
            () ->
                Mono.from(Deadlines.<String>within(ofMillis(400)).apply(slow)).block(Routed.BOUND))
        .satisfiesAnyOf(
            e -> assertThat(e).isInstanceOf(DeadlineExceededException.class),
            // the server's own bound is what was left when the statement was sent
            e -> assertThat(e).hasMessageContaining("statement timeout"));
    eventually(() -> assertThat(running()).isEmpty());
  }

  @Test
  @DisplayName(
      "PG-13 a collected read is bounded on the server by what is left, a streamed one is not")
  void statementTimeout() {
    String shown = "SELECT current_setting('statement_timeout')";
    Mono<String> collected = routed.db.readMono(rows(shown));
    String left =
        Mono.from(Deadlines.<String>within(Duration.ofSeconds(7)).apply(collected)).block();
    assertThat(left).matches("([3-6]\\d{3}ms|[4-7]s)");
    assertThat(routed.read(shown)).containsExactly("0");
  }

  @Test
  @DisplayName("PG-13 without a deadline the default bounds it")
  void defaultBound() {
    try (Routed brief =
        Routed.on(servers, settings -> settings.defaultReadTimeout(ofMillis(500))).warm()) {
      assertThatThrownBy(() -> brief.read("SELECT pg_sleep(60)::text"))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("pg.read");
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  @DisplayName("PG-19 a statement whose caller left is cancelled, its connection not used again")
  void cancelled(boolean withParameter) {
    Function<Connection, Publisher<String>> slow =
        withParameter ? rows("SELECT pg_sleep($1)::text", 60.0) : rows("SELECT pg_sleep(60)::text");
    // behind another one: what runs by itself may do so before its proof's answer is here
    Disposable read =
        routed.db.read(c -> Flux.concat(rows("SELECT 1").apply(c), slow.apply(c))).subscribe();
    eventually(() -> assertThat(running()).hasSize(1));
    int pid = running().get(0).pid();
    read.dispose();
    eventually(() -> assertThat(running()).isEmpty());
    eventually(() -> assertThat(routed.closed(CloseReason.CANCELLED)).isOne());
    eventually(
        () ->
            assertThat(routed.sessions(servers.standby()))
                .isNotEmpty()
                .noneMatch(s -> s.pid() == pid));
  }

  @Test
  @DisplayName("PG-19 one that ends by itself soon leaves its connection in use")
  void endsByItself() {
    try (Routed patient =
        Routed.on(servers, settings -> settings.cancelGrace(Duration.ofSeconds(20))).warm()) {
      Flux<String> numbers = patient.db.read(rows("SELECT n FROM generate_series(1, 5000) n"));
      assertThat(numbers.next().block()).isEqualTo("1");
      eventually(() -> assertThat(patient.gauge("timebound.pg.pool.acquired")).isZero());
      assertThat(numbers.take(3).collectList().block()).containsExactly("1", "2", "3");
      eventually(() -> assertThat(patient.gauge("timebound.pg.pool.acquired")).isZero());
      assertThat(patient.reader.accepted()).as("dials").isOne();
      assertThat(patient.closed(CloseReason.CANCELLED)).isZero();
    }
  }

  @Test
  @DisplayName(
      "PG-16 a caller that leaves in mid-BEGIN of a frozen reader leaves no open transaction")
  void midBegin() {
    servers.standby().freeze();
    Disposable read = routed.db.read(rows("SELECT pg_sleep(60)::text")).subscribe();
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isOne());
    read.dispose();
    eventually(() -> assertThat(routed.closed(CloseReason.OPEN_TRANSACTION)).isOne());
    servers.standby().thaw();
    eventually(
        () ->
            assertThat(routed.sessions(servers.standby()))
                .noneMatch(PostgresSession::isIdleInTransaction)
                .noneMatch(PostgresSession::isRunning));
  }

  @Test
  @DisplayName("PG-15a a maintenance read given up frees its place though the reader is frozen")
  void maintenance() {
    Disposable read =
        routed
            .db
            .read(ReadOptions.defaults().maintenance(), rows("SELECT pg_sleep(60)::text"))
            .subscribe();
    eventually(() -> assertThat(running()).hasSize(1));
    servers.standby().freeze();
    read.dispose();
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    assertThat(routed.closed(CloseReason.ABANDONED)).isOne();
    servers.standby().thaw();
  }

  @Test
  @DisplayName("PG-10 PG-16 cancelled at every stage a thousand times, nothing is left")
  void everyStage() throws InterruptedException {
    SplittableRandom random = new SplittableRandom(7);
    int rounds = 1_000;
    CountDownLatch over = new CountDownLatch(rounds);
    Flux.range(0, rounds)
        .flatMap(
            i ->
                routed
                    .db
                    .read(rows("SELECT n FROM generate_series(1, 50) n"))
                    .take(Duration.ofNanos(random.nextInt(6_000_000)))
                    .count()
                    .doFinally(end -> over.countDown()),
            12)
        .subscribe();
    over.await();
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    assertThat(routed.gauge("timebound.pg.pool.pending")).isZero();
    assertThat(routed.read("SELECT 1")).containsExactly("1");
  }
}
