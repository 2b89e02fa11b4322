package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static dev.timebound.pg.Springs.WHERE;
import static dev.timebound.pg.Springs.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.postgresql.api.PostgresTransactionDefinition;
import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Option;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-14 a connection is bound when it is used, by what it is used for")
class RoutingConnectionFactoryTest {
  private static final TransactionDefinition READ =
      PostgresTransactionDefinition.from(IsolationLevel.REPEATABLE_READ).readOnly();

  private final Routed routed;
  private final RoutingConnectionFactory factory;
  private final Connection connection;

  RoutingConnectionFactoryTest(PostgresReplicaSet servers) {
    routed = Routed.on(servers);
    factory = routed.db.connectionFactory();
    connection = java.util.Objects.requireNonNull(Mono.from(factory.create()).block(Routed.BOUND));
  }

  @BeforeEach
  void warm() {
    Springs.table(routed.servers, "routing");
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    run(connection.close());
    routed.close();
  }

  private static void run(Publisher<Void> call) {
    Mono.from(call).block(Routed.BOUND);
  }

  private List<String> read(String sql, Object... arguments) {
    return list(Flux.from(rows(sql, arguments).apply(connection)));
  }

  private int taken() {
    return routed.writerPool.getMetrics().orElseThrow().acquiredSize();
  }

  private static TransactionDefinition bounded(Duration timeout) {
    return new TransactionDefinition() {
      @Override
      @SuppressWarnings("unchecked")
      public <T> @Nullable T getAttribute(Option<T> option) {
        return option.equals(LOCK_WAIT_TIMEOUT) ? (T) timeout : null;
      }
    };
  }

  @Nested
  class Unbound {
    @Test
    @DisplayName("PG-14 what is asked before it is bound is answered without a connection")
    void answers() {
      assertThat(factory.getMetadata().getName()).isEqualTo("PostgreSQL");
      assertThat(connection.getMetadata().getDatabaseProductName()).isEqualTo("PostgreSQL");
      assertThat(connection.isAutoCommit()).isTrue();
      assertThat(connection.getTransactionIsolationLevel())
          .isEqualTo(IsolationLevel.READ_COMMITTED);
      Statement before = connection.createStatement("SELECT $1 || pg_is_in_recovery()").bind(0, "");
      Batch batch = connection.createBatch().add(WHERE).add("SELECT 2");
      assertThat(Mono.from(connection.validate(ValidationDepth.REMOTE)).block()).isTrue();
      run(connection.setAutoCommit(true));
      run(connection.beginTransaction(READ));
      assertThat(connection.isAutoCommit()).isFalse();
      assertThat(taken()).isZero();
      assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero();
      assertThat(list(texts(before.execute()))).containsExactly("true");
      assertThat(list(texts(batch.execute()))).containsExactly("true", "2");
      run(connection.commitTransaction());
      assertThat(connection.isAutoCommit()).isTrue();
      assertThat(taken()).isZero();
    }

    @Test
    @DisplayName("PG-14 it wraps nothing, so that nobody unwraps it to null")
    void wrapsNothing() {
      assertThat(connection).isNotInstanceOf(Wrapped.class);
      assertThat(factory).isNotInstanceOf(Wrapped.class);
    }

    @Test
    @DisplayName("PG-14 a transaction without a statement takes no connection")
    void empty() {
      run(connection.beginTransaction(READ));
      run(connection.commitTransaction());
      assertThat(routed.routes()).isEmpty();
    }
  }

  private static Flux<String> texts(Publisher<? extends Result> results) {
    return Flux.from(results)
        .concatMap(result -> result.map((row, metadata) -> String.valueOf(row.get(0))));
  }

  @Nested
  class Statements {
    @Test
    @DisplayName("PG-14 a statement with several bindings brings a result for each")
    void bindings() {
      for (boolean readOnly : new boolean[] {true, false}) {
        if (readOnly) {
          run(connection.beginTransaction(READ));
        }
        Statement statement = connection.createStatement("SELECT $1::int * 2");
        statement.bind(0, 1).add().bind(0, 2).add().bindNull(0, Integer.class);
        assertThat(list(texts(statement.execute()))).containsExactly("2", "4", "null");
        assertThat(read(WHERE)).containsExactly(String.valueOf(readOnly));
        run(connection.commitTransaction());
      }
    }

    @Test
    @DisplayName("PG-14 a batch of one brings one result, an error in a batch is the caller's")
    void batches() {
      run(connection.beginTransaction(READ));
      assertThat(list(texts(connection.createBatch().add(WHERE).execute())))
          .containsExactly("true");
      assertThatThrownBy(
              () ->
                  list(
                      texts(
                          connection.createBatch().add("SELECT 1").add("SELECT 1 / 0").execute())))
          .hasMessageContaining("division");
      run(connection.rollbackTransaction());
      assertThat(read("SELECT 'plain'")).containsExactly("plain");
    }

    @Test
    @DisplayName("PG-12 several statements in one text are not tried elsewhere in part")
    void severalInOneText() {
      run(connection.beginTransaction(READ));
      assertThat(read("SELECT pg_is_in_recovery(); SELECT 2")).containsExactly("true", "2");
      run(connection.rollbackTransaction());
    }

    @Test
    @DisplayName("PG-14 generated values come back")
    void generated() {
      assertThat(
              list(
                  texts(
                      connection
                          .createStatement("INSERT INTO routing (n) VALUES ($1)")
                          .returnGeneratedValues("n")
                          .bind("$1", 5)
                          .execute())))
          .containsExactly("5");
    }

    @Test
    @DisplayName("PG-14 a binding that does not fit is an error of the statement")
    void badBinding() {
      for (boolean readOnly : new boolean[] {true, false}) {
        if (readOnly) {
          run(connection.beginTransaction(READ));
        }
        assertThatThrownBy(
                () -> list(texts(connection.createStatement("SELECT 1").bind(3, "x").execute())))
            .isInstanceOfAny(IndexOutOfBoundsException.class, UnsupportedOperationException.class);
        assertThatThrownBy(() -> list(texts(connection.createStatement("SELECT $1").execute())))
            .isInstanceOf(IllegalStateException.class);
        run(connection.rollbackTransaction());
      }
    }
  }

  @Nested
  class Transactions {
    @Test
    @DisplayName("PG-14 a second begin is an error, and leaves the first one standing")
    void beginTwice() {
      for (TransactionDefinition first :
          List.of(READ, PostgresTransactionDefinition.from(IsolationLevel.READ_COMMITTED))) {
        run(connection.beginTransaction(first));
        for (Publisher<Void> second :
            List.of(connection.beginTransaction(), connection.beginTransaction(READ))) {
          assertThatThrownBy(() -> run(second))
              .isInstanceOf(IllegalStateException.class)
              .hasMessage("beginTransaction: a transaction is under way (expected: none)");
        }
        assertThat(connection.isAutoCommit()).isFalse();
        assertThat(read(WHERE)).containsExactly(String.valueOf(first == READ));
        run(connection.rollbackTransaction());
      }
    }

    @Test
    @DisplayName("PG-14 savepoints in a read and in a write")
    void savepoints() {
      for (TransactionDefinition kind :
          List.of(READ, PostgresTransactionDefinition.from(IsolationLevel.READ_COMMITTED))) {
        run(connection.beginTransaction(kind));
        run(connection.createSavepoint("before"));
        assertThatThrownBy(() -> read("SELECT 1 / 0")).hasMessageContaining("division");
        assertThatThrownBy(() -> read("SELECT 1")).hasMessageContaining("aborted");
        run(connection.rollbackTransactionToSavepoint("before"));
        assertThat(read(WHERE)).containsExactly(String.valueOf(kind == READ));
        run(connection.releaseSavepoint("before"));
        assertThatThrownBy(() -> connection.createSavepoint("a; DROP TABLE routing"))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage("savepoint: 'a; DROP TABLE routing' (expected: an identifier)");
        run(connection.commitTransaction());
      }
    }

    @Test
    @DisplayName("PG-14 auto-commit off begins a transaction of the writer's, on commits it")
    void autoCommit() {
      run(connection.setAutoCommit(false));
      assertThat(connection.isAutoCommit()).isFalse();
      assertThat(read("INSERT INTO routing (n) VALUES (1) RETURNING n")).containsExactly("1");
      assertThat(routed.servers.primary().value("SELECT count(*) FROM routing")).isEqualTo("0");
      run(connection.setAutoCommit(true));
      assertThat(routed.servers.primary().value("SELECT count(*) FROM routing")).isEqualTo("1");
      run(connection.beginTransaction(READ));
      assertThat(read(WHERE)).containsExactly("true");
      run(connection.setAutoCommit(true));
      assertThat(connection.isAutoCommit()).isTrue();
      assertThat(read(WHERE)).containsExactly("false");
    }

    @Test
    @DisplayName("PG-14 a transaction that closing ends is rolled back")
    void closedWithin() {
      run(connection.beginTransaction());
      read("INSERT INTO routing (n) VALUES (2) RETURNING n");
      run(connection.close());
      eventually(() -> assertThat(taken()).isZero());
      assertThat(routed.servers.primary().value("SELECT count(*) FROM routing")).isEqualTo("0");
    }

    @Test
    @DisplayName(
        "PG-14 a transaction begun by a statement's text does not go back to the pool open")
    void byText() {
      read("BEGIN");
      assertThat(connection.isAutoCommit()).isFalse();
      read("INSERT INTO routing (n) VALUES (2) RETURNING n");
      run(connection.close());
      eventually(() -> assertThat(taken()).isZero());
      assertThat(routed.servers.primary().value("SELECT count(*) FROM routing")).isEqualTo("0");
    }

    @Test
    @DisplayName(
        "PG-13 past its deadline nothing runs until it is rolled back, on a new connection then")
    void deadline() {
      run(connection.beginTransaction(bounded(Duration.ofSeconds(2))));
      read("INSERT INTO routing (n) VALUES (3) RETURNING n");
      assertThatThrownBy(() -> read("SELECT pg_sleep(60)"))
          .isInstanceOf(DeadlineExceededException.class);
      assertThat(connection.isAutoCommit()).isFalse();
      assertThatThrownBy(() -> read("INSERT INTO routing (n) VALUES (4) RETURNING n"))
          .isInstanceOf(DeadlineExceededException.class);
      assertThatThrownBy(() -> run(connection.commitTransaction()))
          .isInstanceOf(DeadlineExceededException.class);
      run(connection.rollbackTransaction());
      assertThat(connection.isAutoCommit()).isTrue();
      assertThat(read("SELECT count(*) FROM routing")).containsExactly("0");
    }

    @Test
    @DisplayName("PG-14 isolation: a read has REPEATABLE READ, and no more")
    void isolation() {
      run(connection.beginTransaction(READ));
      assertThat(connection.getTransactionIsolationLevel())
          .isEqualTo(IsolationLevel.REPEATABLE_READ);
      run(connection.setTransactionIsolationLevel(IsolationLevel.READ_COMMITTED));
      assertThatThrownBy(
              () -> run(connection.setTransactionIsolationLevel(IsolationLevel.SERIALIZABLE)))
          .hasMessage("isolationLevel: SERIALIZABLE (expected: at most REPEATABLE READ)");
      run(connection.setStatementTimeout(Duration.ofSeconds(1)));
      run(connection.setLockWaitTimeout(Duration.ofSeconds(1)));
      run(connection.rollbackTransaction());
      assertThat(taken()).isZero();
    }
  }

  @Nested
  class Closed {
    @Test
    @DisplayName("PG-14 a closed connection says so, and takes nothing any more")
    void closed() {
      run(connection.close());
      run(connection.close());
      run(connection.rollbackTransaction());
      assertThat(Mono.from(connection.validate(ValidationDepth.LOCAL)).block()).isFalse();
      for (Publisher<?> call :
          List.of(
              connection.beginTransaction(),
              connection.beginTransaction(READ),
              connection.commitTransaction(),
              connection.createSavepoint("a"),
              connection.setAutoCommit(false),
              connection.setTransactionIsolationLevel(IsolationLevel.SERIALIZABLE),
              connection.setStatementTimeout(Duration.ofSeconds(1)),
              connection.createStatement("SELECT 1").execute(),
              connection.createBatch().add("SELECT 1").execute())) {
        assertThatThrownBy(() -> Flux.from(call).blockLast(Routed.BOUND))
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("connection: closed (expected: open)");
      }
      assertThat(taken()).isZero();
    }

    @Test
    @SuppressWarnings({"NullAway", "DataFlowIssue"})
    @DisplayName("PG-14 null is refused at the call")
    void nulls() {
      assertThatThrownBy(() -> connection.createStatement(null))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("sql: null (expected: a value)");
      assertThatThrownBy(() -> connection.createSavepoint(null))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> connection.createStatement("SELECT $1").bind(0, (Object) null))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> connection.createBatch().add(null))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> connection.validate(null))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Nested
  class ReadOnlyStatements {
    private List<String> routedRead(String sql) {
      return list(Flux.from(rows(sql).apply(connection)).transform(ReadOnlyRouting.readOnly()));
    }

    @Test
    @DisplayName("PG-14 under readOnly() each statement is a read of its own, on the reader")
    void onTheReader() {
      assertThat(routedRead(WHERE)).containsExactly("true");
      assertThat(connection.isAutoCommit()).isTrue();
      eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
      assertThatThrownBy(() -> routedRead("SELECT 1 / 0")).hasMessageContaining("division");
      assertThat(routedRead(WHERE)).containsExactly("true");
      assertThatThrownBy(() -> routedRead("INSERT INTO routing (n) VALUES (1)"))
          .isInstanceOf(R2dbcException.class)
          .hasMessageContaining("read-only");
      assertThat(read(WHERE)).containsExactly("false");
      eventually(
          () ->
              assertThat(routed.routes())
                  .isEqualTo("reader proved: 4, writer read_write_requested: 1"));
    }

    @Test
    @DisplayName("PG-14 within a transaction it is the transaction that decides")
    void withinATransaction() {
      run(connection.beginTransaction());
      assertThat(routedRead(WHERE)).containsExactly("false");
      run(connection.rollbackTransaction());
      assertThat(routedRead(WHERE)).containsExactly("true");
    }

    @Test
    @DisplayName("PG-13 such a read has the caller's bound, or the default")
    void bounded() {
      assertThatThrownBy(
              () ->
                  list(
                      Flux.from(rows("SELECT pg_sleep(60)").apply(connection))
                          .transform(ReadOnlyRouting.readOnly())
                          .transform(
                              dev.timebound.deadline.Deadlines.within(Duration.ofMillis(200)))))
          .isInstanceOf(DeadlineExceededException.class);
    }
  }
}
