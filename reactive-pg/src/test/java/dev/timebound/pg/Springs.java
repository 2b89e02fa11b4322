package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.reactive.TransactionalOperator;
import org.springframework.transaction.support.DefaultTransactionDefinition;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Spring's own classes on a routed database's connection factory. */
final class Springs {
  static final String WHERE = "SELECT pg_is_in_recovery()";

  final RoutingConnectionFactory factory;
  final DatabaseClient client;
  final R2dbcTransactionManager transactions;

  Springs(Routed routed) {
    this.factory = routed.db.connectionFactory();
    this.client = DatabaseClient.create(factory);
    // asked for twice, as two beans may: Spring has to know them for one
    this.transactions = new R2dbcTransactionManager(routed.db.connectionFactory());
  }

  TransactionalOperator readOnly() {
    return transaction(definition -> definition.setReadOnly(true));
  }

  TransactionalOperator readWrite() {
    return transaction(definition -> {});
  }

  TransactionalOperator transaction(Consumer<DefaultTransactionDefinition> settings) {
    DefaultTransactionDefinition definition = new DefaultTransactionDefinition();
    settings.accept(definition);
    return TransactionalOperator.create(transactions, definition);
  }

  TransactionalOperator nested() {
    return transaction(
        definition -> definition.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED));
  }

  /** The first column of each row, as text. */
  Flux<String> all(String sql) {
    return client.sql(sql).map((row, metadata) -> String.valueOf(row.get(0))).all();
  }

  /** The same, of the one row. */
  Mono<String> one(String sql) {
    return client.sql(sql).map((row, metadata) -> String.valueOf(row.get(0))).one();
  }

  Mono<Long> update(String sql) {
    return client.sql(sql).fetch().rowsUpdated();
  }

  static <T> List<T> list(Flux<T> rows) {
    return Objects.requireNonNull(rows.collectList().block(Routed.BOUND));
  }

  /** A table of its own on both servers, empty. */
  static void table(PostgresReplicaSet servers, String name) {
    servers
        .primary()
        .execute("CREATE TABLE IF NOT EXISTS " + name + " (id serial PRIMARY KEY, n int UNIQUE)");
    servers.primary().execute("TRUNCATE " + name);
    servers.awaitReplay();
    assertThat(servers.standby().value("SELECT count(*) FROM " + name)).isEqualTo("0");
  }
}
