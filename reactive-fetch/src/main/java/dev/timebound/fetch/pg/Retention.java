package dev.timebound.fetch.pg;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.RoutedDatabase;
import reactor.core.publisher.Mono;

/** Old batches go, and what was said of them, in small transactions that lock no partition. */
final class Retention {
  /** Rows of one transaction. */
  static final int AT_ONCE = 1_000;

  private static final String BATCHES =
      """
      DELETE FROM fetch_batch
      WHERE topic = $1 AND partition = $2 AND last_offset < $3 AND last_offset <= (
        SELECT max(last_offset) FROM (
          SELECT last_offset FROM fetch_batch
          WHERE topic = $1 AND partition = $2 ORDER BY last_offset LIMIT %d) AS oldest)
      """
          .formatted(AT_ONCE);

  private static final String TRANSACTIONS =
      "DELETE FROM fetch_transaction WHERE topic = $1 AND partition = $2 AND last_offset < $3";

  private Retention() {}

  /** What ends before an offset that the start has passed. */
  static Mono<Void> delete(RoutedDatabase database, TopicPartition partition, long offset) {
    return database
        .writeMono(c -> Rows.done(Rows.of(c, BATCHES, partition).bind(2, offset)))
        .repeat()
        .takeUntil(rows -> rows < AT_ONCE)
        .then(
            database.writeMono(c -> Rows.done(Rows.of(c, TRANSACTIONS, partition).bind(2, offset))))
        .then();
  }
}
