package dev.timebound.bench;

import java.util.ArrayList;
import java.util.List;

/** What the command line asked for: names of benchmarks in the order given, and quick or not. */
record BenchArgs(List<String> names, boolean quick) {

  /**
   * Reads the command line; no name means every one of {@code known}, a name given twice runs once.
   *
   * @throws UsageException where it asks for something that is not there
   */
  static BenchArgs parse(List<String> args, List<String> known) throws UsageException {
    boolean quick = false;
    List<String> names = new ArrayList<>();
    for (String arg : args) {
      if (arg.equals("--quick")) {
        quick = true;
      } else if (arg.startsWith("-")) {
        throw new UsageException("Unknown option " + arg + " (options: --quick, --help)");
      } else if (!known.contains(arg)) {
        throw new UsageException(
            "Unknown benchmark " + arg + " (benchmarks: " + String.join(", ", known) + ")");
      } else if (!names.contains(arg)) {
        names.add(arg);
      }
    }
    return new BenchArgs(names.isEmpty() ? known : List.copyOf(names), quick);
  }

  /** The command line asks for what is not there; the message is for the user. */
  static final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
      super(message);
    }
  }
}
