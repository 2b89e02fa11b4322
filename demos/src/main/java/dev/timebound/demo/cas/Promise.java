package dev.timebound.demo.cas;

import dev.timebound.demo.ResultLine;
import dev.timebound.demo.Scenario.Part;
import java.time.Duration;
import java.util.List;
import java.util.Locale;

/**
 * What the demo promises of Timebound's run, and how its RESULT line reads. The goals beside it are
 * what to look for on a quiet machine, and break nothing.
 */
final class Promise {
  static final Duration BACK_LATER = Duration.ofSeconds(3);
  static final Duration GOAL_BACK_LATER = Duration.ofMillis(500);
  static final double GOAL_ADDED_MILLIS = 5;

  private Promise() {}

  /** Each part of the promise, with what came of it. */
  static List<Part> of(Report report, Phases phases) {
    Figures figures = report.figures();
    return List.of(
        Part.some("calls", figures.calls()),
        Part.none("calls not answered 5 s after their deadline", figures.unanswered()),
        Part.none("wrong bytes or answers", figures.wrong()),
        Part.none("blobs said to be missing that are there", figures.falseMissing()),
        Part.some("reads of mirrored blobs", figures.mirroredReads()),
        Part.none("reads of mirrored blobs that failed", figures.failedMirroredReads()),
        new Part(
            "reads that waited for the frozen shard once it was known",
            Integer.toString(report.frozenLate()),
            "at most " + trials(phases) + ", one trial a cooldown",
            report.frozenLate() <= trials(phases)),
        Part.within(
            "killed shard serves its own keys after",
            report.backAfterKillMillis(),
            phases.cooldown().plus(BACK_LATER).toMillis()),
        Part.within(
            "frozen shard serves its own keys after",
            report.backAfterFreezeMillis(),
            phases.cooldown().plus(BACK_LATER).toMillis()));
  }

  /** How many trials a shard may be given while it is frozen. */
  static long trials(Phases phases) {
    return phases.frozen() / phases.cooldown().toSeconds() + 1;
  }

  /** What is aimed at; it breaks no promise. */
  static List<Part> goals(Report report, Phases phases) {
    double added = report.addedFirstByteMillis();
    return List.of(
        new Part(
            "first byte later by, once the shard is known",
            added < 0 ? "not measured" : String.format(Locale.ROOT, "%.1f ms", added),
            "at most " + (int) GOAL_ADDED_MILLIS + " ms",
            added >= 0 && added <= GOAL_ADDED_MILLIS),
        Part.within(
            "both shards serve their own keys after",
            report.backMillis(),
            phases.cooldown().plus(GOAL_BACK_LATER).toMillis()));
  }

  static ResultLine result(Report report) {
    Figures figures = report.figures();
    return ResultLine.of("cas")
        .with("unanswered", figures.unanswered())
        .with("wrong", figures.wrong())
        .with("false_missing", figures.falseMissing())
        .with("failed_mirrored_reads", figures.failedMirroredReads())
        .with("max_ms", figures.slowestMillis())
        .with("back_ms", report.backMillis());
  }

  /** As in {@code calls never answered 0 instead of 151, …}. */
  static String summary(Report timebound, Report stock) {
    return String.format(
        Locale.ROOT,
        "calls never answered %d instead of %d with gRPC's defaults, reads of mirrored blobs that"
            + " failed %d instead of %d",
        timebound.figures().unanswered(),
        stock.figures().unanswered(),
        timebound.figures().failedMirroredReads(),
        stock.figures().failedMirroredReads());
  }
}
