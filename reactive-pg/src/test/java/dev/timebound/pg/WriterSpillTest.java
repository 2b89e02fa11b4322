package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadlines;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresSession;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.reactivestreams.Publisher;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-32 routed reads take a share of the writer's pool at most")
class WriterSpillTest {
  private final PostgresReplicaSet servers;
  private final Routed routed;

  WriterSpillTest(PostgresReplicaSet servers) {
    this.servers = servers;
    // of the writer's 4 connections two are for routed reads
    this.routed = Routed.on(servers, s -> s.acquireTimeout(ofMillis(150))).warm();
    servers.standby().kill();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private Disposable readers(int n) {
    return Flux.range(0, n)
        .flatMap(i -> routed.db.read(rows("SELECT pg_sleep(60)::text")), n)
        .subscribe(row -> {}, e -> {});
  }

  private long running() {
    return routed.sessions(servers.primary()).stream()
        .filter(s -> s.query().contains("pg_sleep"))
        .count();
  }

  @Test
  @DisplayName("PG-32 with every reader out and many reads waiting a write finds a connection")
  void writesGoOn() {
    Disposable reads = readers(20);
    eventually(() -> assertThat(running()).isEqualTo(2));
    assertThat(
            routed
                .db
                .write(rows("SELECT 'written'"))
                .timeout(ofSeconds(10))
                .blockLast(Routed.BOUND))
        .isEqualTo("written");
    assertThat(running()).isEqualTo(2);
    reads.dispose();
  }

  @Test
  @DisplayName("PG-32 what finds no place before its deadline fails, and names both")
  void noPlace() {
    Disposable reads = readers(2);
    eventually(() -> assertThat(running()).isEqualTo(2));
    Flux<String> late = routed.db.read(rows("SELECT 1"));
    assertThatThrownBy(
            () ->
                Flux.from(Deadlines.<String>within(ofMillis(700)).apply(late))
                    .blockLast(Routed.BOUND))
        .isInstanceOf(ReaderUnavailableException.class)
        .hasMessageContaining("reader_")
        .hasMessageContaining("none of its 2 places for routed reads");
    reads.dispose();
  }

  @Test
  @DisplayName("PG-32 one that waits is served when a place comes free")
  void waits() {
    Disposable reads = readers(2);
    eventually(() -> assertThat(running()).isEqualTo(2));
    Mono<String> next = routed.db.readMono(rows("SELECT 'served'")).cache();
    next.subscribe();
    reads.dispose();
    assertThat(next.block(Duration.ofSeconds(20))).isEqualTo("served");
  }

  @Test
  @DisplayName("PG-19 a read given up on the writer leaves no statement there")
  void givenUp() {
    Disposable reads = readers(2);
    eventually(() -> assertThat(running()).isEqualTo(2));
    reads.dispose();
    eventually(() -> assertThat(running()).isZero());
    assertThat(routed.read("SELECT 1")).containsExactly("1");
  }

  @Test
  @DisplayName(
      "PG-32 a connection that comes after its read has left goes back, and its place with it")
  void tooLate() {
    Duration late = ofMillis(600);
    ConnectionFactory slow =
        new ConnectionFactory() {
          @Override
          public Publisher<? extends Connection> create() {
            // as a pool that loses what comes in the moment of a cancel
            return routed.writerPool.create().delayElement(late);
          }

          @Override
          public ConnectionFactoryMetadata getMetadata() {
            return routed.writerPool.getMetadata();
          }
        };
    try (RoutedDatabase db = RoutedDatabase.builder().writer(slow).writerMaxSize(2).build()) {
      for (int i = 0; i < 2; i++) {
        Flux<String> read = db.read(rows("SELECT 1"));
        assertThatThrownBy(
                () ->
                    Flux.from(Deadlines.<String>within(ofMillis(300)).apply(read))
                        .blockLast(Routed.BOUND))
            .isInstanceOf(ReaderUnavailableException.class);
      }
      assertThat(db.read(rows("SELECT 'served'")).blockLast(Routed.BOUND)).isEqualTo("served");
    }
  }

  @Test
  @DisplayName(
      "PG-16 a read given up as its BEGIN is sent to the writer leaves no transaction there")
  void leftAsItBegins() {
    BaseSubscriber<String> reader = new BaseSubscriber<>() {};
    try (RoutedDatabase db =
        RoutedDatabase.builder()
            .writer(Hooked.before(routed.writerPool, "BEGIN", reader::dispose))
            .cancelGrace(Routed.PATIENT_GRACE)
            .build()) {
      db.read(rows("SELECT 1")).subscribe(reader);
      eventually(() -> assertThat(reader.isDisposed()).isTrue());
      eventually(
          () -> {
            assertThat(routed.writerPool.getMetrics().orElseThrow().acquiredSize()).isZero();
            assertThat(routed.sessions(routed.servers.primary()))
                .isNotEmpty()
                .noneMatch(PostgresSession::isIdleInTransaction);
          });
    }
  }
}
