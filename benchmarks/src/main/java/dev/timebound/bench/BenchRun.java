package dev.timebound.bench;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What a run of benchmarks shares: where it is told, how long it may take, what came out. */
final class BenchRun {
  private final boolean quick;
  private final PrintStream out;
  private final List<String> ratios = new ArrayList<>();

  BenchRun(boolean quick, PrintStream out) {
    this.quick = quick;
    this.out = out;
  }

  /** Fewer and shorter rounds: a look, not a measurement. */
  boolean quick() {
    return quick;
  }

  PrintStream out() {
    return out;
  }

  /**
   * Keeps {@code RATIO <name> <value>} for the end of the output: ours over the peer's, turned so
   * that more than 1 is better for us. A value that could not be had (not finite) is kept as NaN.
   */
  void ratio(String name, double value) {
    String text =
        Double.isFinite(value)
            ? String.format(Locale.ROOT, "%.2f", value)
            : Double.toString(Double.NaN);
    ratios.add("RATIO " + name + " " + text);
  }

  /** The RATIO lines, in the order they were kept. */
  List<String> ratios() {
    return List.copyOf(ratios);
  }
}
