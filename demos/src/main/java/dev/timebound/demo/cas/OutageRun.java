package dev.timebound.demo.cas;

import dev.timebound.demo.Pace;
import java.io.PrintStream;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * One run: puts the load on a client and takes two shards through their faults, second by second.
 * Tells how it stands once a second.
 */
final class OutageRun {
  private final StoreClient client;
  private final Stores stores;
  private final Blobs blobs;
  private final Phases phases;
  private final PrintStream out;
  private final Frost frost;
  private final Account account;
  private final StoreLoad load;
  private Back afterKill = new Back(0, 0);
  private Back afterFreeze = new Back(0, 0);

  OutageRun(
      StoreClient client,
      Stores stores,
      Blobs blobs,
      LoadPlan plan,
      Phases phases,
      PrintStream out) {
    this.client = client;
    this.stores = stores;
    this.blobs = blobs;
    this.phases = phases;
    this.out = out;
    this.frost = new Frost(blobs.toFreeze());
    this.account = new Account(frost);
    this.load = new StoreLoad(client, blobs, plan, account);
  }

  /** Runs to the end; the client is not closed, and the stores are as they were. */
  Report run() throws InterruptedException {
    try (load) {
      load.start();
      long start = System.nanoTime();
      for (int second = 0; second < phases.total(); second++) {
        happens(second);
        Pace.until(start + TimeUnit.SECONDS.toNanos(second + 1L));
        out.println(progress(second));
      }
      Figures figures = load.finish();
      return new Report(
          figures,
          back(afterKill),
          back(afterFreeze),
          frost.early(),
          frost.late(),
          frost.addedMillis());
    }
  }

  private void happens(int second) {
    Store killed = stores.get(blobs.toKill());
    Store frozen = stores.get(blobs.toFreeze());
    if (second == phases.warmUp()) {
      account.measure();
      frost.measure();
    }
    if (second == phases.killAt()) {
      frost.pause();
      killed.kill();
      out.println("    " + killed.name() + " is killed: its port is closed");
    }
    if (second == phases.restartAt()) {
      killed.restart();
      afterKill = watched(blobs.toKill());
      out.println("    " + killed.name() + " is there again");
    }
    if (second == phases.freezeAt()) {
      load.askFor(-1);
      frozen.freeze();
      frost.frozen(System.nanoTime());
      out.println("    " + frozen.name() + " is frozen: its sockets stay open, it answers nothing");
    }
    if (second == phases.thawAt()) {
      frozen.thaw();
      afterFreeze = watched(blobs.toFreeze());
      frost.thawed(afterFreeze.since());
      out.println("    " + frozen.name() + " is thawed");
    }
  }

  private Back watched(int shard) {
    Back back = new Back(shard, System.nanoTime());
    account.watch(back);
    load.askFor(shard);
    return back;
  }

  /** A client that tells when it took the shard back is held to that too. */
  private long back(Back back) {
    long millis = back.millis();
    if (millis < 0 || !client.tellsHealth()) {
      return millis;
    }
    long taken = client.takenBackAt(back.shard());
    return taken < back.since()
        ? -1
        : Math.max(millis, TimeUnit.NANOSECONDS.toMillis(taken - back.since() + 999_999));
  }

  private String progress(int second) {
    StoreLoad.Moment now = load.moment();
    return String.format(
        Locale.ROOT,
        "    %2d s  %-8s %4d calls ended, slowest %5d ms; %4d under way, oldest %5d ms%s",
        second + 1,
        phases.name(second),
        now.ended(),
        now.slowestMillis(),
        now.pending(),
        now.oldestMillis(),
        client.state());
  }
}
