package dev.timebound.demo.bigtable;

import dev.timebound.demo.ResultLine;
import java.util.ArrayList;
import java.util.List;

/**
 * What the demo promises of Timebound's run, and how its RESULT line reads. Counts and a generous
 * bound, so that a slow machine does not break it: no error, no row lost, doubled or wrong, the
 * stalled channel taken out and put back, and no read and no silence longer than 5 s.
 */
final class Promise {
  static final long LONGEST_MILLIS = 5_000;

  private Promise() {}

  /** The line's figures are Timebound's own, but for Google's slowest read. */
  static ResultLine result(StallReport timebound, StallReport google) {
    LoadFigures figures = timebound.figures();
    return ResultLine.of("bigtable")
        .with("max_ms", figures.slowestMillis())
        .with("google_max_ms", google.figures().slowestMillis())
        .with("over_1s", figures.overOneSecond())
        .with("silence_ms", figures.silenceMillis())
        .with("errors", figures.errors())
        .with("lost", figures.lost())
        .with("doubled", figures.doubled())
        .with("quarantined", timebound.quarantined())
        .with("restored", timebound.restored());
  }

  /** What of the promise did not hold; empty where all of it did. */
  static List<String> broken(StallReport timebound) {
    List<String> broken = new ArrayList<>();
    LoadFigures figures = timebound.figures();
    none(broken, "reads failed", figures.errors());
    none(broken, "rows lost", figures.lost());
    none(broken, "rows doubled", figures.doubled());
    none(broken, "rows wrong", figures.wrong());
    some(broken, "reads", figures.requests());
    some(broken, "channels quarantined", timebound.quarantined());
    some(broken, "channels restored", timebound.restored());
    within(broken, "slowest read", figures.slowestMillis());
    within(broken, "longest silence of a scan", figures.silenceMillis());
    return broken;
  }

  private static void none(List<String> broken, String what, long count) {
    if (count != 0) {
      broken.add(what + ": " + count + " (expected: 0)");
    }
  }

  private static void some(List<String> broken, String what, long count) {
    if (count < 1) {
      broken.add(what + ": " + count + " (expected: at least 1)");
    }
  }

  private static void within(List<String> broken, String what, long millis) {
    if (millis > LONGEST_MILLIS) {
      broken.add(what + ": " + millis + " ms (expected: at most " + LONGEST_MILLIS + " ms)");
    }
  }
}
