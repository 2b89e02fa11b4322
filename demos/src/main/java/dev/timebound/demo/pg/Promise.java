package dev.timebound.demo.pg;

import dev.timebound.demo.ResultLine;
import dev.timebound.demo.Scenario.Part;
import java.util.List;
import java.util.Locale;

/**
 * What the demo promises of Timebound's run, and how its RESULT line reads. Bounds are generous, so
 * that a slow machine does not break it; the goals beside them are what to look for on a quiet one,
 * and break nothing.
 */
final class Promise {
  static final long LONGEST_MILLIS = 3_000;
  static final long GOAL_MILLIS = 500;

  private Promise() {}

  /** Each part of the promise, with what came of it. */
  static List<Part> of(Report report) {
    Figures figures = report.figures();
    return List.of(
        Part.some("reads", figures.reads()),
        Part.none("reads failed", figures.errors()),
        Part.within("slowest read", figures.slowestMillis(), LONGEST_MILLIS),
        Part.none("answers older than asked for", figures.stale()),
        Part.within("back on the reader after the thaw", report.backMillis(), LONGEST_MILLIS),
        Part.none("sessions left in a transaction", report.leftovers().idleInTransaction()),
        Part.none("statements left running", report.leftovers().running()),
        Part.none("writes failed", figures.writeErrors()),
        Part.within("slowest write", figures.slowestWriteMillis(), LONGEST_MILLIS));
  }

  /** What is aimed at; it breaks no promise. */
  static List<Part> goals(Report report) {
    return List.of(
        Part.within("slowest read", report.figures().slowestMillis(), GOAL_MILLIS),
        Part.within("back on the reader after the thaw", report.backMillis(), GOAL_MILLIS));
  }

  static ResultLine result(Report report) {
    return ResultLine.of("pg")
        .with("errors", report.figures().errors())
        .with("max_ms", report.figures().slowestMillis())
        .with("back_ms", report.backMillis())
        .with("idle_in_tx", report.leftovers().idleInTransaction())
        .with("left_running", report.leftovers().running())
        .with("writer_wait_ms", report.writerWaitMillis());
  }

  /** As in {@code slowest read 1.2 s instead of 18.0 s with r2dbc-pool, …}. */
  static String summary(Report timebound, Report stock) {
    return String.format(
        Locale.ROOT,
        "slowest read %.1f s instead of %.1f s with r2dbc-pool, answers older than asked for %d"
            + " instead of %d",
        timebound.figures().slowestMillis() / 1e3,
        stock.figures().slowestMillis() / 1e3,
        timebound.figures().stale(),
        stock.figures().stale());
  }
}
