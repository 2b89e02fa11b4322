package dev.timebound.demo.bigtable;

import dev.timebound.demo.Pace;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One run: puts the load on a client, stalls one busy connection after the warm-up, thaws it, and
 * waits for what is still under way. Tells how it stands once a second.
 */
public final class StallRun {
  /** How long reads still under way at the end are waited for. */
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final ReadClient client;
  private final Line line;
  private final Phases phases;
  private final PrintStream out;
  private final ReadLoad load;
  private Line.@Nullable Stalled stalled;
  private boolean held;

  StallRun(
      ReadClient client,
      Line line,
      DemoTable table,
      LoadPlan plan,
      Phases phases,
      PrintStream out) {
    this.client = client;
    this.line = line;
    this.phases = phases;
    this.out = out;
    this.load = new ReadLoad(client, table, plan);
  }

  /** Runs to the end; neither the client nor the line is closed. */
  StallReport run() throws InterruptedException {
    int measure = phases.warmUp();
    int stall = measure + phases.normal();
    int thaw = stall + phases.stalled();
    try (load) {
      load.start();
      long start = System.nanoTime();
      for (int second = 0; second < phases.total() || waitsForRestore(second); second++) {
        if (second == measure) {
          load.measure();
        }
        if (second == stall) {
          stall();
        }
        if (second == thaw) {
          thaw();
        }
        Pace.until(start + TimeUnit.SECONDS.toNanos(second + 1L));
        client.news().forEach(line -> out.println("    " + line));
        out.println(progress(second + 1));
      }
      thaw(); // where the run ends with the stall
      LoadFigures figures = load.finish(PATIENCE);
      return new StallReport(figures, held, client.quarantined(), client.restored());
    } finally {
      Line.Stalled last = stalled;
      if (last != null) {
        last.thaw();
      }
    }
  }

  private boolean waitsForRestore(int second) {
    return second < phases.total() + Phases.MORE && client.restored() < client.quarantined();
  }

  private void stall() {
    stalled = line.stallBusiest();
    out.println(
        stalled == null
            ? "    no connection carried anything: nothing to stall"
            : "    stalled: " + stalled.what());
  }

  private void thaw() {
    Line.Stalled last = stalled;
    if (last != null) {
      stalled = null;
      held = last.holds();
      last.thaw();
      out.println(held ? "    thawed" : "    the stalled connection was closed before its time");
    }
  }

  private String progress(int second) {
    ReadLoad.Moment now = load.moment();
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            Locale.ROOT,
            "    %2d s  %-8s %4d reads answered, slowest %5d ms; %4d under way, oldest %5d ms;",
            second,
            phase(second),
            now.answered(),
            now.slowestMillis(),
            now.pending(),
            now.oldestMillis()));
    text.append(
        now.silentScans() == 0
            ? " no scan silent"
            : String.format(
                Locale.ROOT,
                " %d scan%s silent, %d ms",
                now.silentScans(),
                now.silentScans() == 1 ? "" : "s",
                now.silentMillis()));
    int open = line.open();
    text.append("; ").append(open).append(open == 1 ? " connection" : " connections");
    String channels = client.channels();
    if (!channels.isEmpty()) {
      text.append("; ").append(channels);
    }
    return text.toString();
  }

  private String phase(int second) {
    if (second <= phases.warmUp()) {
      return "warm-up";
    }
    if (second <= phases.warmUp() + phases.normal()) {
      return "normal";
    }
    return second <= phases.warmUp() + phases.normal() + phases.stalled() ? "STALLED" : "after";
  }
}
