package dev.timebound.demo.fetch;

import dev.timebound.demo.ResultLine;
import dev.timebound.demo.Scenario.Part;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * What the demo promises, and how its RESULT line reads. Speeds are measured against those of the
 * same run without a stall, before and after, so that a slow machine does not break it; the goal
 * beside them is what to look for on a quiet one, and breaks nothing.
 */
final class Promise {
  static final int LEAST_PERCENT = 70;
  static final int GOAL_PERCENT = 95;

  private final Map<Variant, Map<Client, Figures>> reports;
  private final Backlog backlog;

  /**
   * @param reports of all variants, each with the same clients
   */
  Promise(Map<Variant, Map<Client, Figures>> reports, Backlog backlog) {
    for (Variant variant : Variant.values()) {
      if (!reports.containsKey(variant)) {
        throw new IllegalArgumentException("reports: " + reports.keySet() + " (expected: all)");
      }
    }
    this.reports = reports;
    this.backlog = backlog;
  }

  /** Each part of the promise, with what came of it. */
  List<Part> parts() {
    List<Part> parts = new ArrayList<>();
    for (Client client : of(Variant.NOTHING_SHARED).keySet()) {
      Figures before = of(Variant.NOTHING_SHARED, client);
      Figures halving = of(Variant.HALVING, client);
      String name = client.title() + ", ";
      Rounds.Figures asked = before.rounds();
      parts.add(
          new Part(
              name + "nothing shared: Fetches that wait in vain",
              asked.begun() - asked.ended() + " of " + asked.begun(),
              "the only one",
              asked.begun() == 1 && asked.ended() == 0));
      parts.add(Part.none(name + "nothing shared: healthy records", before.healthy()));
      parts.add(
          Part.some(name + "halving: rounds for healthy partitions", halving.rounds().asked()));
      parts.add(
          Part.none(name + "halving: rounds without healthy records", halving.rounds().barren()));
    }
    parts.add(atLeast(LEAST_PERCENT));
    for (Variant variant : List.of(Variant.HALVING, Variant.PARALLEL)) {
      parts.add(Part.some(variant.title() + ": reads abandoned", sum(variant, Figures::abandoned)));
    }
    parts.add(Part.none("records lost", sum(Figures::lost)));
    parts.add(Part.none("records doubled", sum(Figures::doubled)));
    parts.add(Part.none("records of partition 0 missing at the end", missing()));
    parts.add(Part.none("statements left running", leftRunning()));
    parts.add(Part.none("healthy partitions read to their end while measured", dry()));
    reports.forEach(
        (variant, report) ->
            report.forEach(
                (client, figures) -> {
                  if (!figures.failure().isEmpty()) {
                    String what = variant.title() + ", " + client.title();
                    parts.add(new Part(what, figures.failure(), "no failure", false));
                  }
                }));
    return parts;
  }

  /** What is aimed at; it breaks no promise. */
  List<Part> goals() {
    return List.of(atLeast(GOAL_PERCENT));
  }

  private Part atLeast(int percent) {
    double found = percentOfUnstalled();
    return new Part(
        "parallel: speed of the healthy partitions",
        String.format(Locale.ROOT, "%.1f%% of that without a stall", found),
        "at least " + percent + "%",
        found >= percent);
  }

  /** 0 where there is nothing to compare with. */
  double percentOfUnstalled() {
    double unstalled = unstalledSpeed();
    return unstalled <= 0 ? 0 : 100 * speed(Variant.PARALLEL) / unstalled;
  }

  private double unstalledSpeed() {
    return (speed(Variant.UNSTALLED) + speed(Variant.UNSTALLED_AGAIN)) / 2;
  }

  private double speed(Variant variant) {
    return of(variant).values().stream().mapToDouble(Figures::healthyPerSecond).sum();
  }

  private long missing() {
    return reports.values().stream()
        .flatMap(report -> report.values().stream())
        .mapToLong(figures -> backlog.stalledRecords() - figures.stalledAtEnd())
        .sum();
  }

  /** Of those that share: with nothing shared a statement runs for as long as its client waits. */
  private long leftRunning() {
    return sum(Figures::leftRunning) - sum(Variant.NOTHING_SHARED, Figures::leftRunning);
  }

  private long dry() {
    return reports.values().stream()
        .flatMap(report -> report.values().stream())
        .flatMap(figures -> figures.received().stream().skip(1))
        .filter(received -> received >= backlog.healthyRecords())
        .count();
  }

  ResultLine result() {
    return ResultLine.of("fetch")
        .with("healthy_records_before", sum(Variant.NOTHING_SHARED, Figures::healthy))
        .with("healthy_records_halving", sum(Variant.HALVING, Figures::healthy))
        .with("healthy_records_parallel", sum(Variant.PARALLEL, Figures::healthy))
        .with("lost", sum(Figures::lost))
        .with("doubled", sum(Figures::doubled))
        .with("left_running", leftRunning());
  }

  /** As in {@code healthy records a second 0 with nothing shared, 130 with halving, …}. */
  String summary() {
    return String.format(
        Locale.ROOT,
        "healthy records a second %,.0f with nothing shared, %,.0f with halving, %,.0f with"
            + " parallel, %,.0f with no stall",
        speed(Variant.NOTHING_SHARED),
        speed(Variant.HALVING),
        speed(Variant.PARALLEL),
        unstalledSpeed());
  }

  private long sum(ToLongFunction<Figures> of) {
    return reports.keySet().stream().mapToLong(variant -> sum(variant, of)).sum();
  }

  private long sum(Variant variant, ToLongFunction<Figures> of) {
    return of(variant).values().stream().mapToLong(of).sum();
  }

  private Map<Client, Figures> of(Variant variant) {
    return reports.getOrDefault(variant, Map.of());
  }

  private Figures of(Variant variant, Client client) {
    Figures figures = of(variant).get(client);
    if (figures == null) {
      throw new IllegalArgumentException(variant + ": no " + client);
    }
    return figures;
  }
}
