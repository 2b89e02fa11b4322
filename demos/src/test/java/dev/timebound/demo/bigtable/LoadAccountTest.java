package dev.timebound.demo.bigtable;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.publisher.TestPublisher;

class LoadAccountTest {
  private final LoadAccount account = new LoadAccount();
  private final DemoTable table = new DemoTable(100);
  private final AtomicLong now = new AtomicLong(1_000_000_000);

  @Nested
  class Percentiles {
    @Test
    @DisplayName("of 1 to 1000 ms: p50, p99, p99.9 and the slowest are where they belong")
    void known() {
      account.measure();
      for (int ms = 1; ms <= 1_000; ms++) {
        account.ended(true, MILLISECONDS.toNanos(ms));
      }

      LoadFigures figures = account.figures();
      assertThat(figures.p50Millis()).isCloseTo(500, within(1.0));
      assertThat(figures.p99Millis()).isCloseTo(990, within(1.0));
      assertThat(figures.p999Millis()).isCloseTo(999, within(1.0));
      assertThat(figures.slowestMillis()).isBetween(1_000L, 1_001L);
      assertThat(figures.overOneSecond()).isZero();
    }

    @Test
    @DisplayName("a read of just over 1 s counts as over 1 s, one of 1 s does not")
    void overOneSecond() {
      account.ended(true, MILLISECONDS.toNanos(1_000));
      account.ended(true, MILLISECONDS.toNanos(1_000) + 1);

      assertThat(account.figures().overOneSecond()).isEqualTo(1);
    }

    @Test
    @DisplayName("the warm-up is checked and not timed")
    void warmUp() {
      account.begun(false);
      account.ended(false, MILLISECONDS.toNanos(9_000));
      account.silence(MILLISECONDS.toNanos(9_000));
      account.failed(new IllegalStateException("in the warm-up"));

      LoadFigures figures = account.figures();
      assertThat(figures.requests()).isZero();
      assertThat(figures.slowestMillis()).isZero();
      assertThat(figures.silenceMillis()).isZero();
      assertThat(figures.errors()).isEqualTo(1);
      assertThat(figures.firstError()).contains("in the warm-up");
    }
  }

  @Nested
  class Reads {
    private final Set<OneRead> pending = ConcurrentHashMap.newKeySet();

    @Test
    @DisplayName("latency counts from when the read should have begun, not from when it did")
    void intended() {
      account.measure();
      long intended = now.get();
      now.addAndGet(MILLISECONDS.toNanos(700)); // held up
      OneRead read = read(intended, 0, 1);
      now.addAndGet(MILLISECONDS.toNanos(400));
      Flux.just(row(0)).subscribe(read);

      LoadFigures figures = account.figures();
      assertThat(figures.requests()).isEqualTo(1);
      assertThat(figures.slowestMillis()).isBetween(1_100L, 1_102L);
      assertThat(figures.overOneSecond()).isEqualTo(1);
      assertThat(figures.lost()).isZero();
      assertThat(pending).isEmpty();
    }

    @Test
    @DisplayName("a read that completes without its row has lost it; one that fails has an error")
    void lostOrFailed() {
      Flux.<DemoRow>empty().subscribe(read(now.get(), 0, 1));
      Flux.<DemoRow>error(new IllegalStateException("no")).subscribe(read(now.get(), 0, 1));

      LoadFigures figures = account.figures();
      assertThat(figures.lost()).isEqualTo(1);
      assertThat(figures.errors()).isEqualTo(1);
    }

    @Test
    @DisplayName("a read given up is an error as slow as it was by then, and counts once")
    void givenUp() {
      account.measure();
      TestPublisher<DemoRow> never =
          TestPublisher.createNoncompliant(TestPublisher.Violation.CLEANUP_ON_TERMINATE);
      OneRead read = read(now.get(), 0, 1);
      never.subscribe(read);
      now.addAndGet(MILLISECONDS.toNanos(60_000));
      read.giveUp();
      read.giveUp();

      never.assertCancelled();
      LoadFigures figures = account.figures();
      assertThat(figures.errors()).isEqualTo(1);
      assertThat(figures.slowestMillis()).isBetween(60_000L, 60_100L);
      assertThat(figures.firstError()).contains("no answer");
      assertThat(pending).isEmpty();
    }

    private OneRead read(long intended, int from, int to) {
      return new OneRead(account, new RowCheck(table, from, to), now::get, pending, intended);
    }
  }

  @Nested
  class Silences {
    private final Silence silence = new Silence();

    @Test
    @DisplayName("a wait counts from the demand or the last row, whichever was later")
    void counted() {
      silence.asked(2, 100);
      assertThat(silence.current(150)).isEqualTo(50);
      assertThat(silence.row(160)).isEqualTo(60);
      assertThat(silence.row(200)).isEqualTo(40);
    }

    @Test
    @DisplayName("a reader that wants nothing is not kept waiting, however long")
    void sated() {
      silence.asked(1, 100);
      silence.row(110);

      assertThat(silence.current(9_999)).isZero();
      silence.asked(1, 10_000);
      assertThat(silence.row(10_010)).isEqualTo(10);
    }

    @Test
    @DisplayName("more demand does not shorten a wait that lasts")
    void moreDemand() {
      silence.asked(1, 100);
      silence.asked(1, 500);

      assertThat(silence.ended(600)).isEqualTo(500);
      assertThat(silence.current(700)).isZero();
    }
  }

  @Nested
  class Scans {
    private final MemoryClient client = new MemoryClient(table);

    @Test
    @DisplayName("an open scan reads its rows tick by tick and begins again at the end")
    void endless() {
      OpenScan scan = new OpenScan(client, table, account, now::get, 90, 5);
      scan.tick();
      scan.tick(); // the table's end
      scan.tick(); // from its beginning
      scan.tick();
      scan.close();

      LoadFigures figures = account.figures();
      assertThat(figures.rows()).isEqualTo(20);
      assertThat(figures.lost()).isZero();
      assertThat(figures.doubled()).isZero();
      assertThat(figures.wrong()).isZero();
    }

    @Test
    @DisplayName("a scan that never answers is silent from its demand on, closed or not")
    void silent() {
      client.change = rows -> Flux.never();
      account.measure();
      OpenScan scan = new OpenScan(client, table, account, now::get, 0, 5);
      scan.tick();
      now.addAndGet(MILLISECONDS.toNanos(3_000));
      assertThat(scan.silentFor()).isEqualTo(MILLISECONDS.toNanos(3_000));
      scan.tick();
      scan.close();

      assertThat(account.figures().silenceMillis()).isEqualTo(3_000);
    }

    @Test
    @DisplayName("a scan that fails is an error, and goes on where it was")
    void failing() {
      client.change = rows -> rows.take(3).concatWith(Mono.error(new IllegalStateException("cut")));
      OpenScan scan = new OpenScan(client, table, account, now::get, 0, 5);
      scan.tick();
      client.change = rows -> rows;
      scan.tick();
      scan.close();

      LoadFigures figures = account.figures();
      assertThat(figures.errors()).isEqualTo(1);
      assertThat(figures.rows()).isEqualTo(8);
      assertThat(figures.lost()).isZero();
      assertThat(figures.doubled()).isZero();
    }

    @Test
    @DisplayName("rows left out, and rows sent twice, are found")
    void lossy() {
      client.change = rows -> rows.filter(row -> table.index(row.key()) != 7).repeat(1);
      OpenScan scan = new OpenScan(client, table, account, now::get, 0, 200);
      scan.tick();
      scan.close();

      LoadFigures figures = account.figures();
      assertThat(figures.lost()).isEqualTo(1);
      assertThat(figures.doubled()).isEqualTo(99);
    }
  }

  private DemoRow row(int index) {
    return new DemoRow(table.key(index), table.cells(index).get(0));
  }
}
