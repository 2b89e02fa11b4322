package dev.timebound.fetch.pg;

import dev.timebound.fetch.TopicPartition;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.util.Objects;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Statements, and what they give. */
final class Rows {
  private Rows() {}

  /** A statement whose $1 and $2 are the partition. */
  static Statement of(Connection connection, String sql, TopicPartition partition) {
    return connection
        .createStatement(sql)
        .bind(0, partition.topic())
        .bind(1, partition.partition());
  }

  static <T> Flux<T> read(Statement statement, Function<Row, T> row) {
    return Flux.from(statement.execute())
        .concatMap(result -> result.map((each, metadata) -> row.apply(each)));
  }

  /** How many rows it changed. */
  static Mono<Long> done(Statement statement) {
    return Flux.from(statement.execute()).concatMap(Result::getRowsUpdated).reduce(0L, Long::sum);
  }

  /** Of a column that has no NULL. */
  static long number(Row row, String column) {
    return Objects.requireNonNull(row.get(column, Long.class));
  }

  static int small(Row row, String column) {
    return Objects.requireNonNull(row.get(column, Integer.class));
  }
}
