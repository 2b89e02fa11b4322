package dev.timebound.demo;

import dev.timebound.demo.bigtable.BigtableScenario;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code ./demo [all|bigtable|pg|cas|fetch] [--quick]}: runs the scenarios and ends with a RESULT
 * line each. Exit code 0 only where every promise held; 1 where one did not, or a scenario could
 * not be run; 2 where the command line asks for what is not there.
 */
public final class Demo {
  static final int KEPT = 0;
  static final int BROKEN = 1;
  static final int USAGE = 2;

  private static final List<String> KNOWN = List.of("bigtable", "pg", "cas", "fetch");

  private Demo() {}

  public static void main(String[] args) {
    Logs.quiet();
    int code = run(List.of(args), KNOWN, List.of(new BigtableScenario()), System.out, System.err);
    System.out.flush();
    // not a plain return: a client's own threads must not keep a finished demo alive
    System.exit(code);
  }

  static int run(
      List<String> args,
      List<String> known,
      List<Scenario> standing,
      PrintStream out,
      PrintStream err) {
    DemoArgs asked;
    try {
      asked = DemoArgs.parse(args, known, standing.stream().map(Scenario::name).toList());
    } catch (DemoArgs.UsageException e) {
      err.println(e.getMessage());
      err.println("Usage: ./demo [all|" + String.join("|", known) + "] [--quick]");
      return USAGE;
    }
    List<ResultLine> results = new ArrayList<>();
    boolean kept = true;
    for (Scenario scenario : standing) {
      if (!asked.scenarios().contains(scenario.name())) {
        continue;
      }
      try {
        Scenario.Outcome outcome = scenario.run(asked.quick(), out);
        results.add(outcome.result());
        kept &= outcome.broken().isEmpty();
        tell(scenario, outcome.broken(), out);
      } catch (Exception e) {
        kept = false;
        err.println("The scenario " + scenario.name() + " could not be run: " + e);
        e.printStackTrace(err);
      }
    }
    results.forEach(out::println);
    return kept ? KEPT : BROKEN;
  }

  private static void tell(Scenario scenario, List<String> broken, PrintStream out) {
    if (broken.isEmpty()) {
      out.println("The promise of " + scenario.name() + " held.");
    } else {
      out.println("The promise of " + scenario.name() + " did NOT hold:");
      broken.forEach(line -> out.println("  " + line));
    }
    out.println();
  }
}
