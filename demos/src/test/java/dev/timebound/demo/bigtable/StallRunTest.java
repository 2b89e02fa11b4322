package dev.timebound.demo.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

class StallRunTest {
  private static final LoadPlan PLAN = new LoadPlan(50, 20, 5, 1, 100, 1, 20, 1);
  private static final Phases PHASES = new Phases(1, 1, 1, 0);

  private final DemoTable table = new DemoTable(500);
  private final MemoryClient client = new MemoryClient(table);
  private final FakeLine line = new FakeLine();
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  @Test
  @DisplayName("a run stalls once and thaws, tells a line a second, and accounts for every read")
  void whole() throws InterruptedException {
    StallReport report = run();

    assertThat(report.stalledBusy()).isTrue();
    assertThat(line.did).startsWith("stall", "thaw");
    assertThat(report.figures().requests()).isPositive();
    assertThat(report.figures().errors()).isZero();
    assertThat(report.figures().lost()).isZero();
    assertThat(report.figures().doubled()).isZero();
    assertThat(report.figures().wrong()).isZero();
    assertThat(text().lines().filter(l -> l.contains("reads answered"))).hasSize(3);
    assertThat(text()).contains("warm-up", "normal", "STALLED").doesNotContain("\u001b");
    assertNoThreadIsLeft();
  }

  @Test
  @DisplayName("where nothing could be stalled, or the stalled one was closed, the report says so")
  void notBusy() throws InterruptedException {
    line.busy = false;
    assertThat(run().stalledBusy()).isFalse();
    assertThat(text()).contains("nothing to stall");

    line.busy = true;
    line.holds = false;
    assertThat(run().stalledBusy()).isFalse();
    assertThat(text()).contains("closed before its time");
  }

  @Test
  @DisplayName("a channel that is out is waited for")
  void waitsForRestore() throws InterruptedException {
    client.quarantined = 1;
    line.onThaw = () -> client.restored = 1;
    StallReport report =
        new StallRun(client, line, table, PLAN, new Phases(1, 1, 1, 0), print()).run();

    assertThat(report.restored()).isEqualTo(1);
    assertThat(text()).contains("after");
  }

  @Test
  @DisplayName("a client that throws at a read is an error of that read, not the end of the load")
  void throwing() throws InterruptedException {
    client.change =
        rows -> {
          throw new IllegalStateException("closed");
        };
    StallReport report = run();

    assertThat(report.figures().errors()).isPositive();
    assertThat(report.figures().firstError()).contains("closed");
    assertNoThreadIsLeft();
  }

  @Test
  @DisplayName("a late answer is waited for, beyond the end of the phases")
  void late() throws InterruptedException {
    client.change = rows -> rows.delaySubscription(java.time.Duration.ofMillis(1_500));
    StallReport report = run();

    assertThat(report.figures().errors()).isZero();
    assertThat(report.figures().slowestMillis()).isGreaterThanOrEqualTo(1_500);
    assertThat(report.figures().overOneSecond()).isPositive();
  }

  @Test
  @DisplayName("wrong rows are seen through the whole load")
  void doubled() throws InterruptedException {
    client.change = rows -> rows.concatMap(row -> Flux.just(row, row));
    StallReport report = run();

    assertThat(report.figures().doubled()).isPositive();
  }

  private StallReport run() throws InterruptedException {
    return new StallRun(client, line, table, PLAN, PHASES, print()).run();
  }

  private PrintStream print() {
    return new PrintStream(out, true, StandardCharsets.UTF_8);
  }

  private String text() {
    return out.toString(StandardCharsets.UTF_8);
  }

  private static void assertNoThreadIsLeft() {
    assertThat(Thread.getAllStackTraces().keySet())
        .noneMatch(thread -> thread.getName().startsWith("load-"));
  }

  private static final class FakeLine implements Line {
    final List<String> did = new ArrayList<>();
    boolean busy = true;
    boolean holds = true;
    Runnable onThaw = () -> {};

    @Override
    public int open() {
      return 1;
    }

    @Override
    public @Nullable Stalled stallBusiest() {
      did.add("stall");
      if (!busy) {
        return null;
      }
      return new Stalled() {
        @Override
        public String what() {
          return "connection 1";
        }

        @Override
        public boolean holds() {
          return holds;
        }

        @Override
        public void thaw() {
          did.add("thaw");
          onThaw.run();
        }
      };
    }
  }
}
