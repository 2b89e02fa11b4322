package dev.timebound.demo.fetch;

import dev.timebound.demo.Pace;
import java.io.PrintStream;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * One run: partition 0 stalls, the clients read, the stall is lifted, and what it held back is
 * waited for. Tells how it stands once a second.
 */
final class StallRun {
  /** A read of several partitions is given up before that, under every policy. */
  private static final Duration LONGEST_READ = Duration.ofMillis(3_500);

  /** A client whose first Fetch is for partition 0 alone waits 5.5 s for it. */
  private static final int MORE_SECONDS = 8;

  private static final Duration AFTER_THE_END = Duration.ofMillis(500);
  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final long LOOK_EVERY_MILLIS = 20;

  private final Variant variant;
  private final List<Side> sides;
  private final Database database;
  private final Phases phases;
  private final Backlog backlog;
  private final PrintStream out;
  private final Map<Client, Long> before = new EnumMap<>(Client.class);

  /**
   * @param sides are started and closed here
   */
  StallRun(
      Variant variant,
      List<Side> sides,
      Database database,
      Phases phases,
      Backlog backlog,
      PrintStream out) {
    this.variant = variant;
    this.sides = sides;
    this.database = database;
    this.phases = phases;
    this.backlog = backlog;
    this.out = out;
  }

  Map<Client, Figures> run() throws Exception {
    Map<Client, Figures> found = new EnumMap<>(Client.class);
    boolean closed = false;
    try {
      for (Side side : sides) {
        before.put(side.client(), database.cancelled(side.client()));
      }
      if (variant.stalls()) {
        database.stall();
      }
      for (Side side : sides) {
        side.start();
      }
      double seconds = measure();
      for (Side side : sides) {
        found.put(side.client(), atTheLifting(side, seconds));
      }
      database.lift();
      awaitStalled();
      closed = true;
      close();
      TimeUnit.MILLISECONDS.sleep(2 * AFTER_THE_END.toMillis());
      for (Side side : sides) {
        found.computeIfPresent(side.client(), (client, figures) -> atTheEnd(side, figures));
      }
      return found;
    } finally {
      if (!closed) {
        database.lift();
        close();
      }
    }
  }

  /** How many seconds went by after the warm-up. */
  private double measure() throws InterruptedException {
    long start = System.nanoTime();
    long marked = start;
    long healthy = 0;
    int early = 0;
    for (int second = 1; second <= early + phases.total(variant); second++) {
      Pace.until(start + TimeUnit.SECONDS.toNanos(second));
      if (early == second - 1 && early < MORE_SECONDS && isTooEarly()) {
        early = second;
      }
      if (second == early + phases.warmUp()) {
        sides.forEach(side -> side.account().mark());
        marked = System.nanoTime();
      }
      long now = sum(side -> side.account().healthy());
      out.println(progress(second, now - healthy));
      healthy = now;
    }
    return (System.nanoTime() - marked) / 1e9;
  }

  /** Some client has had no round yet in which it could get anything: its time does not count. */
  private boolean isTooEarly() {
    return variant.policy() != null
        && sides.stream().anyMatch(side -> side.rounds().figures().asked() == 0);
  }

  private String progress(int second, long healthy) {
    return String.format(
        Locale.ROOT,
        "    %2d s  %-8s %,6d healthy records; of partition 0 %,d so far; rounds so far: %s",
        second,
        variant.stalls() ? "STALLED" : "normal",
        healthy,
        sum(side -> side.account().received(Backlog.STALLED)),
        sides.stream()
            .map(side -> side.client().title() + " " + side.rounds().figures().ended())
            .collect(Collectors.joining(", ")));
  }

  private Figures atTheLifting(Side side, double seconds) {
    Account account = side.account();
    Client client = side.client();
    return new Figures(
        IntStream.range(0, Backlog.PARTITIONS).mapToObj(account::received).toList(),
        account.healthySinceMark() / seconds,
        side.rounds().figures(),
        side.abandoned(),
        0,
        database.running(client, LONGEST_READ),
        0,
        0,
        0,
        "");
  }

  private Figures atTheEnd(Side side, Figures then) {
    Account account = side.account();
    Client client = side.client();
    return new Figures(
        then.received(),
        then.healthyPerSecond(),
        then.rounds(),
        then.abandoned(),
        database.cancelled(client) - before.getOrDefault(client, 0L),
        Math.max(then.leftRunning(), database.running(client, AFTER_THE_END)),
        account.received(Backlog.STALLED),
        account.lost(),
        account.doubled(),
        side.failure());
  }

  /** Until every client has all of partition 0, or has had its time for it. */
  private void awaitStalled() throws InterruptedException {
    long lifted = System.nanoTime();
    while (sides.stream().anyMatch(this::lacks)
        && System.nanoTime() - lifted < PATIENCE.toNanos()) {
      TimeUnit.MILLISECONDS.sleep(LOOK_EVERY_MILLIS);
    }
    if (variant.stalls()) {
      out.println(
          String.format(
              Locale.ROOT,
              "    lifted: partition 0 %s after %.1f s",
              sides.stream().anyMatch(this::lacks) ? "still not there" : "was read whole",
              (System.nanoTime() - lifted) / 1e9));
    }
  }

  private boolean lacks(Side side) {
    return side.account().received(Backlog.STALLED) < backlog.stalledRecords();
  }

  private void close() throws Exception {
    for (Side side : sides) {
      side.close();
    }
  }

  private long sum(ToLongFunction<Side> of) {
    return sides.stream().mapToLong(of).sum();
  }
}
