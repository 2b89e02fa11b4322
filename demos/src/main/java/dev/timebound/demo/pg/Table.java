package dev.timebound.demo.pg;

import dev.timebound.test.PostgresServer;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What stands in the database, and the two statements that both clients run on it. */
public final class Table {
  /** Rows of the table. */
  public static final int ROWS = 10_000;

  private static final String READ =
      "SELECT pg_is_in_recovery(), (SELECT max(number) FROM demo_pulse), length(body),"
          + " pg_sleep($2)::text FROM demo_rows WHERE id = $1";
  private static final String READ_AT_ONCE =
      "SELECT pg_is_in_recovery(), (SELECT max(number) FROM demo_pulse), length(body)"
          + " FROM demo_rows WHERE id = $1";

  private Table() {}

  /** Makes it anew on the primary. */
  public static void create(PostgresServer primary) {
    primary.execute("DROP TABLE IF EXISTS demo_rows, demo_pulse");
    primary.execute("CREATE TABLE demo_rows (id int PRIMARY KEY, n bigint, body text)");
    primary.execute(
        "INSERT INTO demo_rows SELECT i, 0, repeat(md5(i::text), 8) FROM generate_series(1, "
            + ROWS
            + ") i");
    primary.execute("CREATE TABLE demo_pulse (number bigint)");
    primary.execute("INSERT INTO demo_pulse VALUES (0)");
    primary.execute("ANALYZE demo_rows");
  }

  /** A row, with what tells who served it and how fresh it is. */
  static Mono<Answer> read(Connection connection, Ask ask) {
    var statement =
        connection.createStatement(ask.sleepMillis() == 0 ? READ_AT_ONCE : READ).bind(0, ask.id());
    if (ask.sleepMillis() > 0) {
      statement.bind(1, ask.sleepMillis() / 1e3);
    }
    return Flux.from(statement.execute())
        .concatMap(Table::answers)
        .singleOrEmpty()
        .switchIfEmpty(Mono.error(() -> new IllegalStateException("no row " + ask.id())));
  }

  private static Publisher<Answer> answers(Result result) {
    return result.map(
        (row, metadata) ->
            new Answer(
                Boolean.TRUE.equals(row.get(0, Boolean.class)),
                Long.parseLong(String.valueOf(row.get(1)))));
  }

  /** A row's change, and the pulse by which a reader's answers show how fresh they are. */
  static Mono<Void> write(Connection connection, int id, long pulse) {
    return execute(connection, "UPDATE demo_rows SET n = n + 1 WHERE id = $1", id)
        .then(execute(connection, "UPDATE demo_pulse SET number = greatest(number, $1)", pulse));
  }

  private static Mono<Void> execute(Connection connection, String sql, Object argument) {
    return Flux.from(connection.createStatement(sql).bind(0, argument).execute())
        .concatMap(Result::getRowsUpdated)
        .then();
  }
}
