package dev.timebound.fetch.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.AbortedTransaction;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;

/**
 * One read of batches, a page for each statement, so that none looks at many more rows than it
 * brings, and the budget is looked at between them. The server adds up the sizes: what does not fit
 * is not sent. All pages see one snapshot.
 */
final class Pages {
  /** Rows that one statement looks at, at most. */
  static final int ROWS = 256;

  /**
   * An index's order from end to end: rows are summed as they come, and nothing is sorted. The
   * first one's size is its sum.
   */
  private static final String PAGE =
      """
      FROM (
        SELECT *, sum(size) OVER (ORDER BY last_offset ROWS UNBOUNDED PRECEDING) AS total
        FROM (
          SELECT * FROM fetch_batch
          WHERE topic = $1 AND partition = $2 AND last_offset >= $3 %s
          ORDER BY last_offset LIMIT %d) AS following) AS summed
      WHERE total <= $4 OR ($5 AND total = size)
      """;

  private static final String COLUMNS =
      "SELECT base_offset, last_offset, records, max_timestamp, bytes";

  private static final String UNCOMMITTED =
      COLUMNS + "\n" + PAGE.formatted("", ROWS) + "ORDER BY last_offset";

  /**
   * With the aborted transactions that reach into the page, on its first row. A statement sees one
   * snapshot: whatever it shows before the last stable offset has ended in it.
   */
  private static final String COMMITTED =
      """
      WITH page AS MATERIALIZED (
        SELECT *
        %s),
      aborted AS (
        SELECT array_agg(producer ORDER BY first_offset, producer) AS producers,
          array_agg(first_offset ORDER BY first_offset, producer) AS firsts,
          array_agg(last_offset ORDER BY first_offset, producer) AS lasts
        FROM fetch_transaction
        WHERE topic = $1 AND partition = $2
          AND last_offset >= (SELECT min(base_offset) FROM page)
          AND first_offset <= (SELECT max(last_offset) FROM page))
      %s,
        CASE WHEN total = size THEN (SELECT producers FROM aborted) END AS producers,
        CASE WHEN total = size THEN (SELECT firsts FROM aborted) END AS firsts,
        CASE WHEN total = size THEN (SELECT lasts FROM aborted) END AS lasts
      FROM page ORDER BY last_offset
      """
          .formatted(
              PAGE.formatted(
                  """
                  AND last_offset < (
                            SELECT coalesce(first_open, next_offset) FROM fetch_partition
                            WHERE topic = $1 AND partition = $2)\
                  """,
                  ROWS),
              COLUMNS);

  /** From its first record to its marker. */
  private record Aborted(AbortedTransaction transaction, long lastOffset) {}

  private final Connection connection;
  private final TopicPartition partition;
  private final ReadSpec spec;
  private final Deadline budget;

  // of the subscription's thread
  private long from;
  private long bytes;
  private int rows;
  private List<Aborted> aborted = List.of();

  Pages(Connection connection, TopicPartition partition, ReadSpec spec, Deadline budget) {
    this.connection = connection;
    this.partition = partition;
    this.spec = spec;
    this.budget = budget;
    this.from = spec.offset();
  }

  /** To be subscribed once. */
  Flux<RecordBatch> all() {
    return Flux.defer(this::page).repeat(this::mayGoOn);
  }

  /** A page that was not full ended at the limit, or at the end of what there is. */
  private boolean mayGoOn() {
    return rows == ROWS && bytes < spec.maxBytes() && !budget.isExpired();
  }

  static String statement(Isolation isolation) {
    return isolation == Isolation.READ_COMMITTED ? COMMITTED : UNCOMMITTED;
  }

  private Flux<RecordBatch> page() {
    rows = 0;
    boolean committed = spec.isolation() == Isolation.READ_COMMITTED;
    return Rows.read(
        Rows.of(connection, statement(spec.isolation()), partition)
            .bind(2, from)
            .bind(3, spec.maxBytes() - bytes)
            .bind(4, spec.firstOfAnySize() && bytes == 0),
        row -> batch(row, committed));
  }

  private RecordBatch batch(Row row, boolean committed) {
    RecordBatch batch =
        new RecordBatch(
            ByteBuffer.wrap(Objects.requireNonNull(row.get("bytes", byte[].class))),
            Rows.number(row, "base_offset"),
            Rows.number(row, "last_offset"),
            Rows.small(row, "records"),
            Rows.number(row, "max_timestamp"));
    if (rows++ == 0 && committed) {
      aborted = aborted(row);
    }
    from = batch.nextOffset();
    bytes += batch.sizeInBytes();
    return aborted.isEmpty() ? batch : batch.withAborted(within(batch));
  }

  private static List<Aborted> aborted(Row row) {
    Long @Nullable [] producers = row.get("producers", Long[].class);
    Long @Nullable [] firsts = row.get("firsts", Long[].class);
    Long @Nullable [] lasts = row.get("lasts", Long[].class);
    if (producers == null || firsts == null || lasts == null) {
      return List.of();
    }
    List<Aborted> all = new ArrayList<>(producers.length);
    for (int i = 0; i < producers.length; i++) {
      all.add(new Aborted(new AbortedTransaction(producers[i], firsts[i]), lasts[i]));
    }
    return all;
  }

  private List<AbortedTransaction> within(RecordBatch batch) {
    return aborted.stream()
        .filter(each -> each.transaction().firstOffset() <= batch.lastOffset())
        .filter(each -> each.lastOffset() >= batch.baseOffset())
        .map(Aborted::transaction)
        .toList();
  }
}
