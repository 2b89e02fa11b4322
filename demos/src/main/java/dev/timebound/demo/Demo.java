package dev.timebound.demo;

import dev.timebound.demo.bigtable.BigtableScenario;
import dev.timebound.demo.cas.CasScenario;
import dev.timebound.demo.fetch.FetchScenario;
import dev.timebound.demo.pg.PgScenario;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code ./demo [all|scenario] [--quick]}: runs the scenarios, tells of each what was promised and
 * what held, and ends with a RESULT line each. Exit code 0 only where every promise held; 1 where
 * one did not, or a scenario could not be run; 2 where the command line asks for what is not there.
 */
public final class Demo {
  static final int KEPT = 0;
  static final int BROKEN = 1;
  static final int USAGE = 2;

  /** All there are; their names stand in the script {@code demo} too. */
  static final List<Scenario> SCENARIOS =
      List.of(new BigtableScenario(), new PgScenario(), new CasScenario(), new FetchScenario());

  private Demo() {}

  public static void main(String[] args) {
    Logs.quiet();
    int code = run(List.of(args), SCENARIOS, System.out, System.err);
    System.out.flush();
    // not a plain return: a client's own threads must not keep a finished demo alive
    System.exit(code);
  }

  static int run(List<String> args, List<Scenario> all, PrintStream out, PrintStream err) {
    List<String> names = all.stream().map(Scenario::name).toList();
    String usage = "Usage: ./demo [all|" + String.join("|", names) + "] [--quick]";
    if (args.contains("--help")) {
      out.println(usage);
      return KEPT;
    }
    DemoArgs asked;
    try {
      asked = DemoArgs.parse(args, names);
    } catch (DemoArgs.UsageException e) {
      err.println(e.getMessage());
      err.println(usage);
      return USAGE;
    }
    List<String> last = new ArrayList<>();
    List<String> results = new ArrayList<>();
    boolean kept = true;
    for (Scenario scenario : all) {
      if (!asked.scenarios().contains(scenario.name())) {
        continue;
      }
      try {
        Scenario.Outcome outcome = scenario.run(asked.quick(), out);
        if (!outcome.summary().isEmpty()) {
          last.add(scenario.name() + ": " + outcome.summary());
        }
        results.add(outcome.result().toString());
        kept &= outcome.broken().isEmpty();
        tell(scenario, outcome, out);
      } catch (Exception e) {
        kept = false;
        err.println("The scenario " + scenario.name() + " could not be run: " + e);
        e.printStackTrace(err);
      }
    }
    last.forEach(out::println);
    results.forEach(out::println);
    return kept ? KEPT : BROKEN;
  }

  private static void tell(Scenario scenario, Scenario.Outcome outcome, PrintStream out) {
    if (!outcome.promise().isEmpty()) {
      out.println("What was promised of Timebound, and what came of it:");
    }
    for (Scenario.Part part : outcome.promise()) {
      out.println((part.held() ? "  held      " : "  NOT held  ") + part);
    }
    if (outcome.broken().isEmpty()) {
      out.println("The promise of " + scenario.name() + " held.");
    } else {
      out.println("The promise of " + scenario.name() + " did NOT hold:");
      outcome.broken().forEach(line -> out.println("  " + line));
    }
    out.println();
  }
}
