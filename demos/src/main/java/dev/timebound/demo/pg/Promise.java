package dev.timebound.demo.pg;

import dev.timebound.demo.ResultLine;
import java.util.ArrayList;
import java.util.List;

/**
 * What the demo promises of Timebound's run, part by part, and how its RESULT line reads. Bounds
 * are generous, so that a slow machine does not break it; the goals beside them are what to look
 * for on a quiet one, and break nothing.
 */
final class Promise {
  static final long LONGEST_MILLIS = 3_000;
  static final long GOAL_MILLIS = 500;

  private Promise() {}

  /**
   * One part.
   *
   * @param what was promised, and what came
   * @param expected what was to come
   */
  record Part(String what, String expected, boolean held) {
    @Override
    public String toString() {
      return what + " (expected: " + expected + ")";
    }
  }

  static List<Part> of(Report report) {
    Figures figures = report.figures();
    List<Part> parts = new ArrayList<>();
    parts.add(new Part("reads: " + figures.reads(), "at least 1", figures.reads() > 0));
    parts.add(
        none("reads failed: " + figures.errors() + named(figures.firstError()), figures.errors()));
    parts.add(within("slowest read", figures.slowestMillis(), LONGEST_MILLIS));
    parts.add(none("answers older than asked for: " + figures.stale(), figures.stale()));
    parts.add(within("back on the reader after the thaw", report.backMillis(), LONGEST_MILLIS));
    parts.add(
        none(
            "sessions left in a transaction: " + report.leftovers().idleInTransaction(),
            report.leftovers().idleInTransaction()));
    parts.add(
        none(
            "statements left running: " + report.leftovers().running(),
            report.leftovers().running()));
    parts.add(none("writes failed: " + figures.writeErrors(), figures.writeErrors()));
    parts.add(within("slowest write", figures.slowestWriteMillis(), LONGEST_MILLIS));
    return parts;
  }

  /** What of the promise did not hold; empty where all of it did. */
  static List<String> broken(Report report) {
    return of(report).stream().filter(part -> !part.held()).map(Part::toString).toList();
  }

  /** What is aimed at; it breaks no promise. */
  static List<Part> goals(Report report) {
    return List.of(
        within("slowest read", report.figures().slowestMillis(), GOAL_MILLIS),
        within("back on the reader after the thaw", report.backMillis(), GOAL_MILLIS));
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

  private static Part none(String what, long count) {
    return new Part(what, "0", count == 0);
  }

  private static Part within(String what, long millis, long bound) {
    return new Part(
        what + ": " + (millis < 0 ? "never" : millis + " ms"),
        "at most " + bound + " ms",
        millis >= 0 && millis <= bound);
  }

  private static String named(String error) {
    return error.isEmpty() ? "" : ", the first by " + error;
  }
}
