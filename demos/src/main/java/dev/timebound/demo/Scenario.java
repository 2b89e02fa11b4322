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

  /** Tells what is aimed at beside the promise, and what came of it. */
  static void tellGoals(List<Part> goals, PrintStream out) {
    out.println("Goals, which break no promise:");
    goals.forEach(goal -> out.println((goal.held() ? "  reached   " : "  missed    ") + goal));
  }

  /**
   * How it ended.
   *
   * @param result the scenario's RESULT line
   * @param promise what was promised, each part with what came of it; empty where the scenario has
   *     told it itself
   * @param broken what of the promise did not hold, one sentence each; empty where all of it held
   * @param summary what it comes to, in one sentence without a full stop; may be empty
   */
  record Outcome(ResultLine result, List<Part> promise, List<String> broken, String summary) {
    public Outcome {
      promise = List.copyOf(promise);
      broken = List.copyOf(broken);
    }

    /** Of a scenario that tells its promise itself. */
    public Outcome(ResultLine result, List<String> broken) {
      this(result, List.of(), broken, "");
    }

    /** With what is broken taken from the promise. */
    public static Outcome of(ResultLine result, List<Part> promise, String summary) {
      List<String> broken =
          promise.stream().filter(part -> !part.held()).map(Part::toString).toList();
      return new Outcome(result, promise, broken, summary);
    }
  }

  /**
   * One part of a promise.
   *
   * @param found what was measured
   * @param expected what was promised of it
   */
  record Part(String what, String found, String expected, boolean held) {
    /** There is to be none of it. */
    public static Part none(String what, long count) {
      return new Part(what, Long.toString(count), "0", count == 0);
    }

    /** There is to be some of it. */
    public static Part some(String what, long count) {
      return new Part(what, Long.toString(count), "at least 1", count >= 1);
    }

    /**
     * It is to come to pass, and in time.
     *
     * @param millis negative where it never did
     */
    public static Part within(String what, long millis, long bound) {
      return new Part(
          what,
          millis < 0 ? "never" : millis + " ms",
          "at most " + bound + " ms",
          millis >= 0 && millis <= bound);
    }

    @Override
    public String toString() {
      return what + ": " + found + " (expected: " + expected + ")";
    }
  }
}
