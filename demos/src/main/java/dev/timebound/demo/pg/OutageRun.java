package dev.timebound.demo.pg;

import dev.timebound.demo.Pace;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * One run: puts the load on a client and takes the standby through its faults, second by second.
 * Tells how it stands once a second.
 */
final class OutageRun {
  /** How long what is under way at the end is waited for. */
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final ReadWriteClient client;
  private final Standby standby;
  private final Phases phases;
  private final PrintStream out;
  private final Account account = new Account(TimeboundClient.STALENESS.toNanos());
  private final ReadWriteLoad load;
  private Back afterThaw = new Back(0);
  private Back afterRestart = new Back(0);
  private Standby.Leftovers leftovers = new Standby.Leftovers(0, 0);
  private Map<String, Long> reasonsBefore = Map.of();

  OutageRun(
      ReadWriteClient client, Standby standby, LoadPlan plan, Phases phases, PrintStream out) {
    this.client = client;
    this.standby = standby;
    this.phases = phases;
    this.out = out;
    this.load = new ReadWriteLoad(client, plan, account);
  }

  /** Runs to the end; the client is not closed. */
  Report run() throws InterruptedException {
    try (load) {
      load.start();
      long start = System.nanoTime();
      for (int second = 0; second < phases.total(); second++) {
        happens(second);
        Pace.until(start + TimeUnit.SECONDS.toNanos(second + 1L));
        out.println(progress(second));
      }
      Figures figures = load.finish(PATIENCE);
      TimeUnit.SECONDS.sleep(1);
      leftovers = leftovers.worse(standby.leftovers());
      return new Report(
          figures,
          reasons(),
          afterThaw.millis(),
          afterRestart.millis(),
          leftovers,
          client.writer().worstWaitMillis());
    }
  }

  private void happens(int second) {
    if (second == phases.warmUp()) {
      reasonsBefore = client.writerReasons();
      client.writer().forget();
      account.measure();
    }
    if (second == phases.freezeAt()) {
      standby.freeze();
      out.println("    the standby is frozen: its sockets stay open, it answers nothing");
    }
    if (second == phases.thawAt()) {
      afterThaw = new Back(System.nanoTime());
      account.watch(afterThaw);
      standby.thaw();
      out.println("    thawed");
    }
    if (second == phases.thawAt() + 1) {
      leftovers = standby.leftovers();
    }
    if (second == phases.pauseAt()) {
      standby.pauseReplay();
      out.println("    the standby's replay is paused: it answers, and grows stale");
    }
    if (second == phases.resumeAt()) {
      standby.resumeReplay();
      out.println("    replay goes on");
    }
    if (second == phases.killAt()) {
      standby.kill();
      out.println("    the standby is killed");
    }
    if (second == phases.restartAt()) {
      standby.restart();
      afterRestart = new Back(System.nanoTime());
      account.watch(afterRestart);
      out.println("    restarted: it takes connections");
    }
  }

  /** Since measuring began. */
  private Map<String, Long> reasons() {
    Map<String, Long> since = new TreeMap<>();
    client
        .writerReasons()
        .forEach(
            (reason, count) -> {
              long more = count - reasonsBefore.getOrDefault(reason, 0L);
              if (more > 0) {
                since.put(reason, more);
              }
            });
    return since;
  }

  private String progress(int second) {
    ReadWriteLoad.Moment now = load.moment();
    return String.format(
        Locale.ROOT,
        "    %2d s  %-8s %4d reads answered, slowest %5d ms; %4d under way, oldest %5d ms;"
            + " writer's: %s; %s",
        second + 1,
        phases.name(second),
        now.answered(),
        now.slowestMillis(),
        now.pending(),
        now.oldestMillis(),
        client.writer().state(),
        client.readers());
  }
}
