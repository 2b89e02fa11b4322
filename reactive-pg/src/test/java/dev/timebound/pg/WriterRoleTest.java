package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Springs.WHERE;
import static dev.timebound.pg.Springs.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-14a the role of a server is looked at, not assumed")
class WriterRoleTest {
  private final Routed routed;

  WriterRoleTest(PostgresReplicaSet servers) {
    routed = Routed.on(servers);
  }

  @BeforeEach
  void warm() {
    Springs.table(routed.servers, "role");
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  @Test
  @DisplayName("PG-14a a writer that is a standby: begin, a plain write and a read say so")
  void writerIsAStandby() {
    try (RoutedDatabase demoted =
        RoutedDatabase.builder()
            .writer(
                new PostgresqlConnectionFactory(
                    routed.to(PostgresqlConnectionConfiguration.builder(), routed.reader).build()))
            .build()) {
      RoutingConnectionFactory factory = demoted.connectionFactory();
      DatabaseClient client = DatabaseClient.create(factory);
      TransactionalOperator write =
          TransactionalOperator.create(new R2dbcTransactionManager(factory));
      assertThatThrownBy(
              () ->
                  client.sql(WHERE).fetch().all().as(write::transactional).blockLast(Routed.BOUND))
          .isInstanceOf(WriterRoleException.class);
      assertThatThrownBy(
              () ->
                  client
                      .sql("INSERT INTO role (n) VALUES (1)")
                      .fetch()
                      .rowsUpdated()
                      .block(Routed.BOUND))
          .isInstanceOf(WriterRoleException.class)
          .hasMessageContaining("it is a standby now")
          .hasCauseInstanceOf(R2dbcException.class);
      assertThatThrownBy(
              () ->
                  Flux.usingWhen(
                          factory.create(),
                          c ->
                              Mono.from(c.beginTransaction()).thenMany(Routed.rows(WHERE).apply(c)),
                          Connection::close)
                      .blockLast(Routed.BOUND))
          .isInstanceOf(WriterRoleException.class);
      assertThat(
              client
                  .sql("SELECT 'a plain read'")
                  .map((row, metadata) -> String.valueOf(row.get(0)))
                  .one()
                  .block(Routed.BOUND))
          .isEqualTo("a plain read");
      assertThatThrownBy(() -> demoted.read(Routed.rows(WHERE)).blockLast(Routed.BOUND))
          .isInstanceOf(WriterRoleException.class);
    }
  }

  @Test
  @DisplayName("PG-14a a primary whose sessions are read-only by default is no standby")
  void readOnlyByDefault() {
    Mono<String> both =
        Mono.usingWhen(
            routed.db.connectionFactory().create(),
            c ->
                Flux.concat(
                        Routed.rows("SET default_transaction_read_only = on").apply(c),
                        Routed.rows("INSERT INTO role (n) VALUES (1)").apply(c))
                    .then(Mono.just("written")),
            Connection::close);
    assertThatThrownBy(() -> both.block(Routed.BOUND))
        .isNotInstanceOf(WriterRoleException.class)
        .hasMessageContaining("read-only transaction");
  }

  @Test
  @DisplayName("PG-14a a reader that was promoted still serves, and is told of once")
  void promotedReader() {
    Springs spring = new Springs(routed);
    List<String> told = new CopyOnWriteArrayList<>();
    routed.db.promotions().subscribe(event -> told.add(event.reader()));
    routed.servers.standby().promote();
    try (Logged logged = Logged.of(RoutedDatabase.class)) {
      eventually(
          () ->
              assertThat(
                      list(
                          spring
                              .readOnly()
                              .transactional(spring.all("SELECT 'by ' || inet_server_port()"))))
                  .containsExactly("by " + routed.servers.standby().port()));
      assertThat(list(spring.readOnly().transactional(spring.all(WHERE)))).containsExactly("false");
      assertThat(list(spring.readOnly().transactional(spring.all(WHERE)))).containsExactly("false");
      eventually(() -> assertThat(routed.routes()).contains("reader proved: 3"));
      assertThat(routed.meters.get("timebound.pg.reader.promoted").counter().count()).isOne();
      eventually(() -> assertThat(told).containsExactly("standby-1"));
      assertThat(logged.warnings())
          .singleElement()
          .satisfies(
              event ->
                  assertThat(event.getFormattedMessage())
                      .isEqualTo(
                          "pg reader standby-1 is not in recovery: it was promoted, and still"
                              + " serves reads"));
    }
  }
}
