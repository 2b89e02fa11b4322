package dev.timebound.pg;

import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Statement;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-19 what is left early ends there, and the transaction goes on")
class LeftEarlyTest {
  private static final String MANY = "SELECT n FROM generate_series(1, 2000) n";
  private static final int PORTION = 10;

  private final Routed routed;

  LeftEarlyTest(PostgresReplicaSet servers) {
    this.routed = Routed.on(servers, patient -> patient.cancelGrace(Routed.PATIENT_GRACE));
  }

  @BeforeEach
  void warm() {
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private Flux<String> run(boolean write, Function<Connection, Publisher<String>> work) {
    return write ? routed.db.write(work) : routed.db.read(work);
  }

  private static Statement fetching(Connection c, boolean parameter) {
    Statement statement = c.createStatement(parameter ? MANY + " WHERE n > $1" : MANY);
    return (parameter ? statement.bind(0, 0) : statement).fetchSize(PORTION);
  }

  @ParameterizedTest(name = "a write: {0}, with a parameter: {1}")
  @CsvSource({"false,false", "false,true", "true,false", "true,true"})
  @DisplayName("PG-19 of rows fetched in portions the rest is not fetched")
  void portions(boolean write, boolean parameter) {
    FaultProxy proxy = write ? routed.writer : routed.reader;
    run(write, rows("SELECT 1")).blockLast(Routed.BOUND); // the writer is dialled
    long before = proxy.roundTrips();
    assertThat(
            run(
                    write,
                    c ->
                        Flux.from(fetching(c, parameter).execute())
                            .concatMap(r -> r.map((row, metadata) -> String.valueOf(row.get(0))))
                            .take(3)
                            .concatWith(rows("SELECT 'behind it'").apply(c)))
                .collectList()
                .block(Routed.BOUND))
        .containsExactly("1", "2", "3", "behind it");
    assertThat(proxy.roundTrips() - before).isLessThan(2000 / PORTION / 2);
  }

  @ParameterizedTest(name = "a write: {0}, with a parameter: {1}")
  @CsvSource({"false,false", "false,true", "true,false", "true,true"})
  @DisplayName("PG-19 and of a result that nobody consumes nothing is waited for")
  void unconsumed(boolean write, boolean parameter) {
    assertThat(
            run(
                    write,
                    c ->
                        Mono.from(fetching(c, parameter).execute())
                            .thenMany(rows("SELECT 'behind it'").apply(c)))
                .collectList()
                .block(Routed.BOUND))
        .containsExactly("behind it");
  }
}
