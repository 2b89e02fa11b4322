package dev.timebound.bench;

import dev.timebound.demo.TextTable;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** Methods of one JMH suite that take turns, one fork at a time; the median fork counts. */
final class JmhContest {
  /** Time an operation, in ns. */
  static final String WALL = "ns";

  /** CPU time of the process an operation, in ns. */
  private static final String CPU = "cpu";

  /** Allocated an operation, by JMH's gc profiler. */
  static final String BYTES = "bytes";

  private JmhContest() {}

  /** All of the methods, in so many rounds; two where the run is a quick one. */
  static Contest<String> run(BenchRun run, String suite, List<String> methods, int rounds)
      throws Exception {
    Contest<String> contest = new Contest<>(methods);
    int asked = run.quick() ? 2 : rounds;
    contest.run(
        asked,
        method -> fork(suite, method, run.quick()),
        (round, method, figures) ->
            run.out()
                .printf(
                    Locale.ROOT,
                    "  round %d of %d  %-10s %8.1f ns%n",
                    round,
                    asked,
                    method,
                    figures.get(WALL)));
    return contest;
  }

  private static Figures fork(String suite, String method, boolean quick) throws RunnerException {
    Options options =
        new OptionsBuilder()
            .include("^" + suite.replace(".", "\\.") + "\\." + method + "$")
            .mode(Mode.AverageTime)
            .timeUnit(TimeUnit.NANOSECONDS)
            .forks(1)
            .threads(1)
            .warmupIterations(quick ? 2 : 4)
            .warmupTime(TimeValue.seconds(1))
            .measurementIterations(quick ? 2 : 5)
            .measurementTime(TimeValue.seconds(1))
            .addProfiler(CpuProfiler.class)
            .addProfiler(org.openjdk.jmh.profile.GCProfiler.class)
            .shouldFailOnError(true)
            .verbosity(VerboseMode.SILENT)
            .build();
    Collection<RunResult> results = new Runner(options).run();
    if (results.size() != 1) {
      throw new RunnerException(suite + "." + method + ": " + results.size() + " benchmarks found");
    }
    RunResult result = results.iterator().next();
    return Figures.none()
        .with(WALL, result.getPrimaryResult().getScore())
        .with(CPU, secondary(result, CpuProfiler.LABEL))
        .with(BYTES, secondary(result, "gc.alloc.rate.norm"));
  }

  private static double secondary(RunResult result, String label) {
    Result<?> found = result.getSecondaryResults().get(label);
    return found == null ? Double.NaN : found.getScore();
  }

  static TextTable table(String title, Contest<String> contest) {
    TextTable table =
        new TextTable(
            title,
            "time an operation\nmedian",
            "\nmin",
            "\nmax",
            "CPU\nmedian",
            "allocated\nmedian");
    for (String method : contest.contestants()) {
      String[] wall = contest.of(method, WALL).cells("%.1f ns");
      table.row(
          method,
          wall[0],
          wall[1],
          wall[2],
          contest.of(method, CPU).cell("%.1f ns"),
          contest.of(method, BYTES).cell("%.0f B"));
    }
    return table;
  }
}
