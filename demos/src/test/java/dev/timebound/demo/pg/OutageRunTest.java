package dev.timebound.demo.pg;

import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.spi.Connection;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

class OutageRunTest {
  private static final Phases PHASES = new Phases(1, 1, 1, 2, 1, 1, 1, 1);
  private static final LoadPlan PLAN = new LoadPlan(200, 20, 1);

  private final List<String> did = new ArrayList<>();
  private final FakeClient client = new FakeClient();
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  @Test
  @DisplayName("every fault in its turn, a line a second, and every read accounted for")
  void whole() throws InterruptedException {
    Report report = run();

    assertThat(did)
        .containsExactly("freeze", "thaw", "look", "pause", "resume", "kill", "restart", "look");
    assertThat(out.toString(StandardCharsets.UTF_8).lines().filter(l -> l.contains("answered")))
        .hasSize(PHASES.total());
    Figures figures = report.figures();
    assertThat(figures.errors()).isZero();
    assertThat(figures.reads())
        .isPositive()
        .isEqualTo(figures.byReader() + figures.byWriter() + figures.left());
    assertThat(figures.left()).isPositive();
    assertThat(figures.writes()).isPositive();
    assertThat(report.backMillis()).isNotNegative();
    assertThat(report.leftovers()).isEqualTo(new Standby.Leftovers(1, 0));
    assertThat(report.writerReasons()).as("since the warm-up").containsOnlyKeys("more");
    assertThat(Thread.getAllStackTraces().keySet())
        .noneMatch(thread -> thread.getName().startsWith("load-"));
  }

  @Test
  @DisplayName("reads that the writer serves to the end are never back on the reader")
  void neverBack() throws InterruptedException {
    client.byReader = false;
    assertThat(run().backMillis()).isEqualTo(-1);
  }

  @Test
  @DisplayName("a client that throws at a read is an error of that read, not the end of the load")
  void throwing() throws InterruptedException {
    client.failure = new IllegalStateException("closed");
    Report report = run();
    assertThat(report.figures().errors()).isPositive();
    assertThat(report.figures().firstError()).contains("closed");
  }

  private Report run() throws InterruptedException {
    PrintStream print = new PrintStream(out, true, StandardCharsets.UTF_8);
    return new OutageRun(client, new FakeStandby(), PLAN, PHASES, print).run();
  }

  private final class FakeStandby implements Standby {
    @Override
    public void freeze() {
      did.add("freeze");
    }

    @Override
    public void thaw() {
      did.add("thaw");
    }

    @Override
    public void pauseReplay() {
      did.add("pause");
    }

    @Override
    public void resumeReplay() {
      did.add("resume");
    }

    @Override
    public void kill() {
      did.add("kill");
    }

    @Override
    public void restart() {
      did.add("restart");
    }

    @Override
    public Leftovers leftovers() {
      did.add("look");
      return new Leftovers(did.contains("pause") ? 0 : 1, 0);
    }
  }

  private static final class FakeClient implements ReadWriteClient {
    boolean byReader = true;
    @Nullable IllegalStateException failure;
    private final AtomicLong pulse = new AtomicLong();
    private final AtomicLong asked = new AtomicLong();
    private final WriterPool writer =
        new WriterPool(new Servers(1, 1, "nobody", "nothing", "nowhere"));

    @Override
    public <T> Mono<T> reading(Function<Connection, Mono<T>> work) {
      return Mono.error(new UnsupportedOperationException());
    }

    @Override
    public Mono<Answer> read(Ask ask) {
      if (failure != null) {
        throw failure;
      }
      return Mono.delay(Duration.ofMillis(ask.sleepMillis()))
          .map(tick -> new Answer(byReader, pulse.get()));
    }

    @Override
    public Mono<Void> write(int id, long number) {
      return Mono.fromRunnable(() -> pulse.accumulateAndGet(number, Math::max));
    }

    @Override
    public Map<String, Long> writerReasons() {
      return asked.incrementAndGet() == 1 ? Map.of("before", 3L) : Map.of("before", 3L, "more", 2L);
    }

    @Override
    public WriterPool writer() {
      return writer;
    }

    @Override
    public String readers() {
      return "";
    }

    @Override
    public void close() {}
  }
}
