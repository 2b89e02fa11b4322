package dev.timebound.demo;

import java.util.ArrayList;
import java.util.List;

/**
 * What the command line asked for.
 *
 * @param scenarios names of the scenarios to run, in the order to run them
 * @param quick each run shortened
 */
record DemoArgs(List<String> scenarios, boolean quick) {

  static final String ALL = "all";

  /**
   * Reads the command line: at most one scenario (none means all) and options.
   *
   * @param known every scenario, in order
   * @throws UsageException where the command line asks for something that is not there
   */
  static DemoArgs parse(List<String> args, List<String> known) throws UsageException {
    boolean quick = false;
    List<String> names = new ArrayList<>();
    for (String arg : args) {
      if (arg.equals("--quick")) {
        quick = true;
      } else if (arg.startsWith("-")) {
        throw new UsageException("Unknown option " + arg + " (options: --quick, --help)");
      } else {
        names.add(arg);
      }
    }
    if (names.size() > 1) {
      throw new UsageException("One scenario at a time, not " + String.join(" and ", names));
    }
    String name = names.isEmpty() ? ALL : names.get(0);
    if (name.equals(ALL)) {
      return new DemoArgs(known, quick);
    }
    if (!known.contains(name)) {
      throw new UsageException(
          "Unknown scenario " + name + " (scenarios: all, " + String.join(", ", known) + ")");
    }
    return new DemoArgs(List.of(name), quick);
  }

  /** The command line asks for what is not there; the message is for the user. */
  static final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
      super(message);
    }
  }
}
