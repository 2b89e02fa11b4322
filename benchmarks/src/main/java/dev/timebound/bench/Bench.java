package dev.timebound.bench;

import dev.timebound.demo.Logs;
import java.io.PrintStream;
import java.util.List;

/**
 * {@code ./bench [name…] [--quick]}: runs the benchmarks, prints a table each and ends with the
 * RATIO lines. Exit code 0 where all ran, whatever the figures (a benchmark never fails a build), 1
 * where one could not be run, 2 where the command line asks for what is not there.
 */
public final class Bench {
  static final int RAN = 0;
  static final int COULD_NOT = 1;
  static final int USAGE = 2;

  /** All there are; their names stand in the script {@code bench} too. */
  static final List<Benchmark> BENCHMARKS =
      List.of(
          new DeadlineOperator(),
          new PoolPick(),
          new HealthReport(),
          new BigtableScan(),
          new BigtablePoint(),
          new BigtableWindow(),
          new BigtableStall(),
          new PgRoutedRead(),
          new PgPlainRead(),
          new PgStorm(),
          new CasRead(),
          new CasSmall(),
          new CasLookup(),
          new CasFailover(),
          new FetchThroughput(),
          new FetchStall(),
          new FetchShare());

  private Bench() {}

  public static void main(String[] args) {
    Logs.quiet();
    int code = run(List.of(args), BENCHMARKS, System.out, System.err);
    System.out.flush();
    System.exit(code);
  }

  static int run(List<String> args, List<Benchmark> all, PrintStream out, PrintStream err) {
    List<String> known = all.stream().map(Benchmark::name).toList();
    String usage = "Usage: ./bench [" + String.join("|", known) + " ...] [--quick]";
    if (args.contains("--help")) {
      out.println(usage);
      return RAN;
    }
    BenchArgs asked;
    try {
      asked = BenchArgs.parse(args, known);
    } catch (BenchArgs.UsageException e) {
      err.println(e.getMessage());
      err.println(usage);
      return USAGE;
    }
    BenchRun run = new BenchRun(asked.quick(), out);
    int code = RAN;
    for (String name : asked.names()) {
      Benchmark benchmark = all.get(known.indexOf(name));
      out.println(name + (asked.quick() ? " (quick: a look, not a measurement)" : ""));
      try {
        benchmark.run(run);
      } catch (Exception e) {
        code = COULD_NOT;
        err.println("The benchmark " + name + " could not be run: " + e);
        e.printStackTrace(err);
      }
      out.println();
    }
    run.ratios().forEach(out::println);
    return code;
  }
}
