package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Springs.WHERE;
import static dev.timebound.pg.Springs.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadlines;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.spi.R2dbcException;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-14 Spring's transactions go where their definition says")
class SpringTransactionsTest {
  private final Routed routed;
  private final Springs spring;

  SpringTransactionsTest(PostgresReplicaSet servers) {
    routed = Routed.on(servers);
    spring = new Springs(routed);
  }

  @BeforeEach
  void warm() {
    Springs.table(routed.servers, "spring_tx");
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private void routes(String expected) {
    eventually(() -> assertThat(routed.routes()).isEqualTo(expected));
  }

  private static String state(Throwable e) {
    for (Throwable t = e; t != null; t = t.getCause()) {
      if (t instanceof R2dbcException r2dbc) {
        return String.valueOf(r2dbc.getSqlState());
      }
    }
    return "none";
  }

  @Nested
  class Where {
    @Test
    @DisplayName("PG-14 read-only on the standby; read-write and plain statements on the writer")
    void byDefinition() {
      assertThat(list(spring.readOnly().transactional(spring.all(WHERE)))).containsExactly("true");
      assertThat(list(spring.readWrite().transactional(spring.all(WHERE))))
          .containsExactly("false");
      assertThat(list(spring.all(WHERE))).containsExactly("false");
      routes("reader proved: 1, writer read_write_requested: 2");
    }

    @Test
    @DisplayName("PG-14 a write is committed; one whose transaction fails is rolled back")
    void writes() {
      assertThat(
              spring
                  .readWrite()
                  .transactional(spring.update("INSERT INTO spring_tx (n) VALUES (1)"))
                  .block(Routed.BOUND))
          .isEqualTo(1);
      assertThatThrownBy(
              () ->
                  spring
                      .readWrite()
                      .transactional(
                          spring
                              .update("INSERT INTO spring_tx (n) VALUES (2)")
                              .then(Mono.error(new IllegalStateException("no"))))
                      .block(Routed.BOUND))
          .hasMessage("no");
      assertThat(routed.servers.primary().value("SELECT string_agg(n::text, ' ') FROM spring_tx"))
          .isEqualTo("1");
    }

    @Test
    @DisplayName("PG-10 all that a read-only transaction reads is one snapshot of one server")
    void oneSnapshot() {
      String txid = "SELECT pg_current_snapshot()::text || pg_backend_pid()";
      assertThat(
              list(
                  spring
                      .readOnly()
                      .transactional(
                          Flux.concat(spring.all(txid), spring.all(txid), spring.all(WHERE)))))
          .satisfies(seen -> assertThat(seen.get(0)).isEqualTo(seen.get(1)))
          .last()
          .isEqualTo("true");
    }

    @Test
    @DisplayName("PG-14 read-write joined inside read-only stays on the standby, and cannot write")
    void joined() {
      assertThat(
              list(
                  spring
                      .readOnly()
                      .transactional(
                          Flux.concat(
                              spring.all(WHERE),
                              spring.readWrite().transactional(spring.all(WHERE))))))
          .containsExactly("true", "true");
      assertThatThrownBy(
              () ->
                  spring
                      .readOnly()
                      .transactional(
                          spring
                              .readWrite()
                              .transactional(spring.update("INSERT INTO spring_tx (n) VALUES (3)")))
                      .block(Routed.BOUND))
          .satisfies(e -> assertThat(state(e)).isEqualTo("25006"));
    }

    @Test
    @DisplayName("PG-14 read-only joined inside read-write sees what was written there")
    void readOnlyInside() {
      assertThat(
              list(
                  spring
                      .readWrite()
                      .transactional(
                          Flux.concat(
                              spring
                                  .update("INSERT INTO spring_tx (n) VALUES (4)")
                                  .map(String::valueOf),
                              spring
                                  .readOnly()
                                  .transactional(spring.all("SELECT n FROM spring_tx"))))))
          .containsExactly("1", "4");
      routes("writer read_write_requested: 1");
    }

    @Test
    @DisplayName("PG-14 a transaction of its own inside a read-only one writes on the writer")
    void requiresNew() {
      TransactionalOperator own =
          spring.transaction(
              d -> d.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW));
      assertThat(
              list(
                  spring
                      .readOnly()
                      .transactional(
                          Flux.concat(
                              spring.all(WHERE),
                              own.transactional(
                                  spring.all("INSERT INTO spring_tx (n) VALUES (5) RETURNING n")),
                              spring.all(WHERE)))))
          .containsExactly("true", "5", "true");
      routes("reader proved: 1, writer read_write_requested: 1");
    }

    @Test
    @DisplayName("PG-14 SERIALIZABLE, which a standby does not have, is the writer's")
    void serializable() {
      TransactionalOperator strict =
          spring.transaction(
              d -> {
                d.setReadOnly(true);
                d.setIsolationLevel(TransactionDefinition.ISOLATION_SERIALIZABLE);
              });
      assertThat(
              list(
                  strict.transactional(
                      Flux.concat(
                          spring.all(WHERE),
                          spring.all("SHOW transaction_isolation"),
                          spring.all("SHOW transaction_read_only")))))
          .containsExactly("false", "serializable", "on");
    }

    @Test
    @DisplayName("PG-10 weaker isolation asked for a read-only transaction is REPEATABLE READ")
    void weaker() {
      TransactionalOperator weak =
          spring.transaction(
              d -> {
                d.setReadOnly(true);
                d.setIsolationLevel(TransactionDefinition.ISOLATION_READ_COMMITTED);
              });
      assertThat(list(weak.transactional(spring.all("SHOW transaction_isolation"))))
          .containsExactly("repeatable read");
    }

    @Test
    @DisplayName("PG-10 enforceReadOnly costs nothing: still one round trip to the answer")
    void enforceReadOnly() {
      spring.transactions.setEnforceReadOnly(true);
      Mono<String> read =
          spring
              .readOnly()
              .transactional(
                  spring
                      .client
                      .sql("SELECT $1 || pg_is_in_recovery()")
                      .bind(0, "in recovery: ")
                      .map((row, metadata) -> String.valueOf(row.get(0)))
                      .one());
      assertThat(read.block(Routed.BOUND)).isEqualTo("in recovery: true");
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
      routed.reader.delay(Duration.ofMillis(20));
      long before = routed.reader.roundTrips();
      assertThat(read.block(Routed.BOUND)).isEqualTo("in recovery: true");
      // the ROLLBACK's is the second
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
      assertThat(routed.reader.roundTrips() - before).isLessThanOrEqualTo(2);
    }
  }

  @Nested
  class Savepoints {
    @Test
    @DisplayName("PG-14 nested transactions of a write: the inner one alone is rolled back")
    void inWrites() {
      Mono<Long> outer = spring.update("INSERT INTO spring_tx (n) VALUES (1)");
      Mono<Long> inner =
          spring
              .nested()
              .transactional(
                  spring
                      .update("INSERT INTO spring_tx (n) VALUES (2)")
                      .then(spring.update("INSERT INTO spring_tx (n) VALUES (2)")));
      Mono<Long> after =
          spring.nested().transactional(spring.update("INSERT INTO spring_tx (n) VALUES (3)"));
      spring
          .readWrite()
          .transactional(outer.then(inner.onErrorReturn(-1L)).then(after))
          .block(Routed.BOUND);
      assertThat(routed.servers.primary().value("SELECT string_agg(n::text, ' ') FROM spring_tx"))
          .isEqualTo("1 3");
    }

    @Test
    @DisplayName("PG-10 nested transactions of a read: an error in the inner one ends it alone")
    void inReads() {
      Flux<String> inner =
          spring.nested().transactional(spring.all("SELECT 1 / 0")).onErrorReturn("failed");
      assertThat(
              list(
                  spring
                      .readOnly()
                      .transactional(
                          Flux.concat(
                              inner,
                              spring.all(WHERE),
                              spring.nested().transactional(spring.all(WHERE))))))
          .containsExactly("failed", "true", "true");
      routes("reader proved: 1");
    }
  }

  @Nested
  class Faults {
    @Test
    @DisplayName("PG-11 a frozen reader: the transaction has its rows from the writer, no error")
    void frozen() {
      routed.servers.standby().freeze();
      assertThat(
              list(
                  spring
                      .readOnly()
                      .transactional(
                          Flux.concat(
                              spring.all(WHERE),
                              spring.all("SHOW transaction_read_only"),
                              spring.all("SHOW transaction_isolation")))))
          .containsExactly("false", "on", "repeatable read");
      routes("writer reader_proof_timeout: 1");
    }

    @Test
    @DisplayName("PG-11a a reader that goes out after the proof and before the first row")
    void afterTheProof() {
      Mono<String> slow =
          spring
              .readOnly()
              .transactional(
                  spring.one(
                      "SELECT CASE WHEN pg_is_in_recovery() THEN pg_sleep(60)::text"
                          + " ELSE 'the writer' END"));
      Mono<String> waiting = slow.cache();
      waiting.subscribe();
      eventually(
          () ->
              assertThat(routed.sessions(routed.servers.standby()))
                  .anyMatch(session -> session.isRunning()));
      routed.servers.standby().freeze();
      // what makes it suspect: reads that come after
      for (int i = 0; i < 3; i++) {
        assertThat(list(spring.readOnly().transactional(spring.all(WHERE))))
            .containsExactly("false");
      }
      assertThat(waiting.block(Routed.BOUND)).isEqualTo("the writer");
    }

    @Test
    @DisplayName("PG-12 the caller's own error is the caller's, in Spring's terms")
    void ownError() {
      assertThatThrownBy(
              () -> list(spring.readOnly().transactional(spring.all("SELECT * FROM nowhere"))))
          .isInstanceOf(org.springframework.r2dbc.BadSqlGrammarException.class);
      routes("reader proved: 1");
    }

    @Test
    @DisplayName("PG-13 a statement behind a first one that was given up does not wait for it")
    void firstGivenUp() {
      routed.servers.standby().freeze();
      Mono<String> impatient =
          spring.one(WHERE).timeout(Duration.ofMillis(100)).onErrorReturn("given up");
      assertThatThrownBy(
              () ->
                  list(
                      spring
                          .readOnly()
                          .transactional(Flux.concat(impatient, spring.all("SELECT 1")))))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("given up");
    }
  }

  @Nested
  class ReadingOnesWrites {
    @Test
    @DisplayName("PG-21 a read-only transaction sees what one of the same scope wrote before")
    void inTransactions() {
      routed.servers.standby().pauseReplay();
      Mono<String> both =
          spring
              .readWrite()
              .transactional(spring.update("INSERT INTO spring_tx (n) VALUES (6)"))
              .then(spring.readOnly().transactional(spring.one("SELECT sum(n) FROM spring_tx")));
      assertThat(both.block(Routed.BOUND)).as("without a scope").isEqualTo("null");
      assertThat(
              both.onErrorResume(e -> Mono.empty())
                  .then(
                      spring
                          .readWrite()
                          .transactional(spring.update("INSERT INTO spring_tx (n) VALUES (7)"))
                          .then(
                              spring
                                  .readOnly()
                                  .transactional(spring.one("SELECT sum(n) FROM spring_tx")))
                          .transform(ReadYourWrites.scope()))
                  .block(Routed.BOUND))
          .isEqualTo("13");
      routed.servers.standby().resumeReplay();
    }

    @Test
    @DisplayName("PG-21 of a plain statement too, whose first row is all that was taken")
    void ofPlainStatements() {
      routed.servers.standby().pauseReplay();
      Mono<String> both =
          spring
              .all("INSERT INTO spring_tx (n) SELECT generate_series(1, 3) RETURNING n")
              .next()
              .then(spring.readOnly().transactional(spring.one("SELECT sum(n) FROM spring_tx")))
              .transform(ReadYourWrites.scope());
      assertThat(both.block(Routed.BOUND)).isEqualTo("6");
      routed.servers.standby().resumeReplay();
    }

    @Test
    @DisplayName("PG-21 once its replay is there the reader serves again")
    void onTheReaderAgain() {
      Mono<String> both =
          spring
              .update("INSERT INTO spring_tx (n) VALUES (8)")
              .then(
                  Mono.fromRunnable(routed.servers::awaitReplay)
                      .subscribeOn(Schedulers.boundedElastic()))
              .then(
                  spring
                      .readOnly()
                      .transactional(
                          spring.one("SELECT sum(n) || ' ' || pg_is_in_recovery() FROM spring_tx")))
              .transform(ReadYourWrites.scope());
      assertThat(both.block(Routed.BOUND)).isEqualTo("8 true");
    }
  }

  @Nested
  class Deadlines13 {
    @Test
    @DisplayName("PG-13 a narrower bound of one statement does not end the transaction")
    void narrower() {
      for (TransactionalOperator kind :
          new TransactionalOperator[] {spring.readOnly(), spring.readWrite()}) {
        Flux<String> brief =
            spring
                .all("SELECT pg_sleep(0.3)::text")
                .transform(Deadlines.within(Duration.ofMillis(100)))
                .onErrorReturn("too slow");
        assertThat(
                list(
                    kind.transactional(
                        Flux.concat(spring.all("SELECT 1"), brief, spring.all("SELECT 2")))))
            .containsExactly("1", "too slow", "2");
      }
    }
  }
}
