package dev.timebound.bench;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Contestants that take turns for some rounds, and the figures they came to. The order changes from
 * round to round ({@link Rounds}), so that a machine that grows slower is unfair to none.
 *
 * @param <C> what tells them apart: an enum, or a name
 */
final class Contest<C> {
  private final List<C> contestants;
  private final Map<C, Map<String, Samples>> samples = new HashMap<>();

  Contest(List<C> contestants) {
    this.contestants = List.copyOf(contestants);
  }

  /** Runs one contestant once. */
  @FunctionalInterface
  interface Trial<C> {
    Figures run(C contestant) throws Exception;
  }

  /** Hears of each trial as it ends; {@code round} counts from 1. */
  @FunctionalInterface
  interface Listener<C> {
    void ended(int round, C contestant, Figures figures);
  }

  /** Runs all of them in each of the rounds. The first trial that throws ends the contest. */
  void run(int rounds, Trial<C> trial, Listener<C> listener) throws Exception {
    for (int round = 0; round < rounds; round++) {
      for (C contestant : Rounds.order(contestants, round)) {
        Figures figures = trial.run(contestant);
        add(contestant, figures);
        listener.ended(round + 1, contestant, figures);
      }
    }
  }

  private void add(C contestant, Figures figures) {
    Map<String, Samples> own = samples.computeIfAbsent(contestant, c -> new HashMap<>());
    figures
        .keys()
        .forEach(key -> own.computeIfAbsent(key, k -> new Samples()).add(figures.get(key)));
  }

  List<C> contestants() {
    return contestants;
  }

  /** One figure of one contestant over the rounds; empty where it never gave it. */
  Samples of(C contestant, String key) {
    return samples.getOrDefault(contestant, Map.of()).getOrDefault(key, new Samples());
  }

  /**
   * How many times the peer's median is ours: more than 1 is in our favour where less is better.
   */
  double ratio(C peer, C ours, String key) {
    return of(peer, key).median() / of(ours, key).median();
  }
}
