package dev.timebound.demo;

import java.io.PrintStream;
import java.util.List;

/** One part of the demo: a real backend, a fault, the stock way beside Timebound. */
public interface Scenario {

  /** Its name on the command line and in its RESULT line. */
  String name();

  /**
   * Runs it to its end, telling what happens as it happens.
   *
   * @param quick shorter runs of the same things
   */
  Outcome run(boolean quick, PrintStream out) throws Exception;

  /**
   * How it ended.
   *
   * @param result the scenario's RESULT line
   * @param broken what of the promise did not hold, one sentence each; empty where all of it held
   */
  record Outcome(ResultLine result, List<String> broken) {
    public Outcome {
      broken = List.copyOf(broken);
    }
  }
}
