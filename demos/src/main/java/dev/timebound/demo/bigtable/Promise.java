package dev.timebound.demo.bigtable;

import dev.timebound.demo.ResultLine;
import dev.timebound.demo.Scenario.Part;
import java.util.List;
import java.util.Locale;

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

  /** Each part of the promise, with what came of it. */
  static List<Part> of(StallReport timebound) {
    LoadFigures figures = timebound.figures();
    return List.of(
        Part.none("reads failed", figures.errors()),
        Part.none("rows lost", figures.lost()),
        Part.none("rows doubled", figures.doubled()),
        Part.none("rows wrong", figures.wrong()),
        Part.some("reads", figures.requests()),
        Part.some("channels quarantined", timebound.quarantined()),
        Part.some("channels restored", timebound.restored()),
        Part.within("slowest read", figures.slowestMillis(), LONGEST_MILLIS),
        Part.within("longest silence of a scan", figures.silenceMillis(), LONGEST_MILLIS));
  }

  /** As in {@code slowest read 2.1 s instead of 10.0 s, longest silence of a scan 1.9 s …}. */
  static String summary(StallReport timebound, StallReport google) {
    LoadFigures ours = timebound.figures();
    LoadFigures theirs = google.figures();
    return "slowest read "
        + seconds(ours.slowestMillis())
        + " instead of "
        + seconds(theirs.slowestMillis())
        + " with Google's client, longest silence of a scan "
        + seconds(ours.silenceMillis())
        + " instead of "
        + seconds(theirs.silenceMillis());
  }

  private static String seconds(long millis) {
    return String.format(Locale.ROOT, "%.1f s", millis / 1e3);
  }
}
