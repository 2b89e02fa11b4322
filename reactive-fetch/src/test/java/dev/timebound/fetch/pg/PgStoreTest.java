package dev.timebound.fetch.pg;

import static dev.timebound.fetch.pg.PgBench.BOUND;
import static dev.timebound.fetch.pg.PgBench.got;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.AbortedTransaction;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.test.PostgresReplicaSet;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.test.scheduler.VirtualTimeScheduler;

@DisplayName("The store in Postgres")
class PgStoreTest {
  private final PgBench bench = PgBench.on(PostgresReplicaSet.shared());

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static ByteBuffer bytes(int size) {
    return ByteBuffer.allocate(size);
  }

  @Nested
  @DisplayName("topics")
  class Topics {
    @Test
    @DisplayName("FE-12 made once; who makes it again is told how many partitions it has")
    void once() {
      assertThat(got(bench.store.createTopic("once", 3))).isEqualTo(3);
      assertThat(got(bench.store.createTopic("once", 5))).isEqualTo(3);
      assertThat(got(bench.store.topics())).isEqualTo(Map.of("once", 3));
      TopicPartition last = new TopicPartition("once", 2);
      TopicPartition none = new TopicPartition("once", 3);
      assertThat(got(bench.store.existing(Set.of(last, none)))).containsExactly(last);
    }

    @Test
    @DisplayName("one that another process made is found")
    void elsewhere() {
      assertThat(got(bench.store.topics(Set.of("elsewhere")))).isEmpty();
      PgStore other = got(PgStore.builder(bench.database).open());
      got(other.createTopic("elsewhere", 1));
      assertThat(got(bench.store.topics(Set.of("elsewhere")))).containsEntry("elsewhere", 1);
      other.close();
    }

    @Test
    @DisplayName("what is refused says so")
    void refused() {
      assertThatThrownBy(() -> bench.store.createTopic(" ", 1)).hasMessageContaining("topic:");
      assertThatThrownBy(() -> bench.store.createTopic("x".repeat(250), 1))
          .hasMessageContaining("at most 249");
      assertThatThrownBy(() -> bench.store.createTopic("x", 0))
          .hasMessage("partitions: 0 (expected: >= 1)");
      TopicPartition unknown = new TopicPartition("unknown", 0);
      assertThatThrownBy(() -> got(bench.store.append(unknown, bytes(1), 1, 1)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("unknown-0");
      assertThatThrownBy(() -> got(bench.store.offsets(unknown)))
          .isInstanceOf(IllegalArgumentException.class);
      TopicPartition there = bench.newPartition();
      assertThatThrownBy(() -> got(bench.store.append(there, bytes(1), 0, 1)))
          .hasMessage("records: 0 (expected: >= 1)");
      assertThatThrownBy(() -> got(bench.store.append(there, ByteBuffer.allocate(0), 1, 1)))
          .hasMessage("bytes: none (expected: one at least)");
      assertThatThrownBy(() -> bench.store.deleteBefore(there, 1).block(BOUND))
          .hasMessage("offset: 1 (expected: <= high watermark 0)");
      assertThatThrownBy(() -> got(bench.store.endTransaction(there, 7, true, base -> bytes(1), 1)))
          .isInstanceOf(IllegalStateException.class);
    }
  }

  @Nested
  @DisplayName("reads")
  class Reads {
    @Test
    @DisplayName("FE-13 more than a page: all that fit, in order, once; the rest is not sent")
    void pages() {
      TopicPartition partition = bench.newPartition();
      bench.flood(partition, 3 * Pages.ROWS, 10);
      assertThat(bench.bases(partition, 0, 1 << 20, Isolation.READ_UNCOMMITTED))
          .containsExactly(LongStream.range(0, 3 * Pages.ROWS).boxed().toArray(Long[]::new));
      assertThat(bench.bases(partition, 1, 10 * (Pages.ROWS + 7) + 3, Isolation.READ_COMMITTED))
          .hasSize(Pages.ROWS + 7);
      assertThat(bench.bases(partition, 0, 10 * Pages.ROWS, Isolation.READ_UNCOMMITTED))
          .hasSize(Pages.ROWS);
    }

    @Test
    @DisplayName("FE-4 without a budget no statement is sent")
    void noBudget() {
      TopicPartition partition = bench.filled(2, 10);
      bench.stall(partition);
      List<RecordBatch> none =
          got(
              bench
                  .store
                  .read(
                      partition,
                      new ReadSpec(0, 1000, true, Isolation.READ_UNCOMMITTED),
                      Deadline.after(Duration.ZERO))
                  .collectList());
      assertThat(none).isEmpty();
      assertThat(bench.running()).isEmpty();
    }

    @Test
    @DisplayName("FE-22 the budget is looked at between pages: once it has passed none is begun")
    void budgetBetweenPages() {
      TopicPartition partition = bench.newPartition();
      bench.flood(partition, 3 * Pages.ROWS, 10);
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      Deadline budget = Deadline.after(Duration.ofSeconds(1), time);
      List<RecordBatch> batches =
          got(
              bench
                  .store
                  .read(
                      partition, new ReadSpec(0, 1 << 20, true, Isolation.READ_UNCOMMITTED), budget)
                  .doOnNext(
                      batch -> {
                        if (batch.baseOffset() == 5) {
                          time.advanceTimeBy(Duration.ofSeconds(2));
                        }
                      })
                  .collectList());
      assertThat(batches).hasSize(Pages.ROWS);
      time.dispose();
    }

    @Test
    @DisplayName("of a big partition no statement sorts, or looks at more rows than a page has")
    void plan() {
      TopicPartition partition = bench.newPartition();
      bench.flood(partition, 20_000, 100);
      for (boolean analysed : new boolean[] {false, true}) {
        if (analysed) {
          bench.primary.execute("ANALYZE fetch_batch");
        }
        for (Isolation isolation : Isolation.values()) {
          String plan = explain(Pages.statement(isolation), partition, 9_000L, 100_000L, true);
          assertThat(plan).contains("Index Scan").doesNotContain("Seq Scan on fetch_batch_");
          assertThat(rowsLookedAt(plan)).as(plan).isLessThanOrEqualTo(Pages.ROWS);
          if (isolation == Isolation.READ_UNCOMMITTED) {
            assertThat(plan).doesNotContain("Sort");
          }
        }
        String plan = explain(PgReads.AT, partition, 15_000L, false);
        assertThat(plan).contains("Index").doesNotContain("Seq Scan on fetch_batch_");
        assertThat(rowsLookedAt(plan)).as(plan).isLessThanOrEqualTo(2);
      }
    }

    private String explain(String sql, TopicPartition partition, Object... rest) {
      String text = sql.replace("$1", "'" + partition.topic() + "'").replace("$2", "0");
      for (int i = 0; i < rest.length; i++) {
        text = text.replace("$" + (i + 3), rest[i].toString());
      }
      StringBuilder plan = new StringBuilder();
      bench
          .primary
          .query("EXPLAIN (ANALYZE, TIMING OFF) " + text)
          .forEach(row -> plan.append(row.get("QUERY PLAN")).append('\n'));
      return plan.toString();
    }

    /** Of its child table, kept or thrown away. */
    private static long rowsLookedAt(String plan) {
      long rows = 0;
      boolean scan = false;
      for (String line : plan.lines().toList()) {
        var actual = java.util.regex.Pattern.compile("actual rows=(\\d+)").matcher(line);
        var removed = java.util.regex.Pattern.compile("Rows Removed by.*: (\\d+)").matcher(line);
        if (actual.find()) {
          scan = line.contains("Scan") && line.contains("fetch_batch_");
          rows += scan ? Long.parseLong(actual.group(1)) : 0;
        } else if (scan && removed.find()) {
          rows += Long.parseLong(removed.group(1));
        }
      }
      return rows;
    }
  }

  @Nested
  @DisplayName("transactions")
  class Transactions {
    @Test
    @DisplayName("FE-10 of two that are open the first one holds the last stable offset")
    void two() {
      TopicPartition partition = bench.newPartition();
      transactional(partition, 7);
      transactional(partition, 8);
      transactional(partition, 7);
      assertThat(offsets(partition)).isEqualTo(Offsets.of(0, 3, 0));
      end(partition, 7, true);
      assertThat(offsets(partition)).isEqualTo(Offsets.of(0, 4, 1));
      assertThat(bench.bases(partition, 0, 1000, Isolation.READ_COMMITTED)).containsExactly(0L);
      transactional(partition, 7);
      end(partition, 8, false);
      assertThat(offsets(partition)).isEqualTo(Offsets.of(0, 6, 4));
      end(partition, 7, true);
      assertThat(offsets(partition)).isEqualTo(Offsets.of(0, 7, 7));
    }

    @Test
    @DisplayName("the aborted ones are told on every page that has records of theirs")
    void abortedOnEachPage() {
      TopicPartition partition = bench.newPartition();
      transactional(partition, 7);
      for (int i = 0; i < Pages.ROWS + 5; i++) {
        got(bench.store.append(partition, bytes(1), 1, 1));
      }
      end(partition, 7, false);
      transactional(partition, 8);
      end(partition, 8, false);
      got(bench.store.append(partition, bytes(1), 1, 1));
      List<RecordBatch> all =
          bench.read(partition, new ReadSpec(0, 10_000, true, Isolation.READ_COMMITTED));
      assertThat(all).hasSize(Pages.ROWS + 10);
      AbortedTransaction seven = new AbortedTransaction(7, 0);
      AbortedTransaction eight = new AbortedTransaction(8, Pages.ROWS + 7);
      int marker = Pages.ROWS + 6;
      assertThat(all.subList(0, marker + 1))
          .allSatisfy(batch -> assertThat(batch.aborted()).containsExactly(seven));
      assertThat(all.subList(marker + 1, marker + 3))
          .allSatisfy(batch -> assertThat(batch.aborted()).containsExactly(eight));
      assertThat(all.get(marker + 3).aborted()).isEmpty();
    }

    private void transactional(TopicPartition partition, long producer) {
      got(bench.store.appendTransactional(partition, producer, base -> bytes(10), 1, 1));
    }

    private void end(TopicPartition partition, long producer, boolean commit) {
      got(bench.store.endTransaction(partition, producer, commit, base -> bytes(10), 1));
    }

    private Offsets offsets(TopicPartition partition) {
      return got(bench.store.offsets(partition));
    }
  }

  @Nested
  @DisplayName("retention and times")
  class Retained {
    @Test
    @DisplayName("what is deleted is gone for good, many rows and the aborted ones of them too")
    void deleted() {
      TopicPartition partition = bench.newPartition();
      got(bench.store.appendTransactional(partition, 7, base -> bytes(10), 1, 1));
      got(bench.store.endTransaction(partition, 7, false, base -> bytes(10), 1));
      bench.primary.execute("DELETE FROM fetch_batch");
      bench.flood(partition, 2 * Retention.AT_ONCE + 5, 10);
      bench.store.deleteBefore(partition, 2L * Retention.AT_ONCE + 2).block(BOUND);
      assertThat(got(bench.store.offsets(partition)).logStart())
          .isEqualTo(2L * Retention.AT_ONCE + 2);
      assertThat(bench.primary.value("SELECT count(*) FROM fetch_batch")).isEqualTo("3");
      assertThat(bench.primary.value("SELECT count(*) FROM fetch_transaction")).isEqualTo("0");
      bench.store.deleteBefore(partition, 5).block(BOUND);
      assertThat(got(bench.store.offsets(partition)).logStart())
          .isEqualTo(2L * Retention.AT_ONCE + 2);
    }

    @Test
    @DisplayName(
        "by time the first batch that has it, also where times go back and older ones went")
    void byTime() {
      TopicPartition partition = bench.newPartition();
      for (long time : new long[] {50, 10, 20, 60, 30}) {
        got(bench.store.append(partition, bytes(10), 2, time));
      }
      assertThat(at(partition, 15)).isEqualTo(new TimestampOffset(0, 50));
      assertThat(at(partition, 55)).isEqualTo(new TimestampOffset(6, 60));
      bench.store.deleteBefore(partition, 3).block(BOUND);
      assertThat(at(partition, 5)).isEqualTo(new TimestampOffset(3, 10));
      assertThat(at(partition, 15)).isEqualTo(new TimestampOffset(4, 20));
      assertThat(at(partition, 61)).isEqualTo(TimestampOffset.NONE);
      got(bench.store.appendTransactional(partition, 7, base -> bytes(10), 1, 99));
      assertThat(at(partition, 61)).isEqualTo(new TimestampOffset(10, 99));
      assertThat(got(bench.store.offsetFor(partition, 61, Isolation.READ_COMMITTED)))
          .isEqualTo(TimestampOffset.NONE);
    }

    private TimestampOffset at(TopicPartition partition, long time) {
      return got(bench.store.offsetFor(partition, time, Isolation.READ_UNCOMMITTED));
    }
  }
}
