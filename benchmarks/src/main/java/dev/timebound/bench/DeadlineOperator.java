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

/**
 * {@code deadline-operator}: a Mono bounded by a deadline against Reactor's own {@code
 * timeout(Duration)} (DL-9). The two take turns, one JMH fork at a time; the median fork counts.
 */
final class DeadlineOperator implements Benchmark {
  private static final String SUITE = "dev.timebound.bench.DeadlineOperatorBench";
  private static final String OURS = "timebound";
  private static final String PEER = "reactor";
  private static final String WALL = "ns";

  @Override
  public String name() {
    return "deadline-operator";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<String> contest = new Contest<>(List.of(OURS, PEER));
    int rounds = run.quick() ? 2 : 5;
    contest.run(
        rounds,
        method -> fork(method, run.quick()),
        (round, method, figures) ->
            run.out()
                .printf(
                    Locale.ROOT,
                    "  round %d of %d  %-10s %8.1f ns%n",
                    round,
                    rounds,
                    method,
                    figures.get(WALL)));
    print(run, contest);
    run.ratio(name(), contest.ratio(PEER, OURS, WALL));
  }

  private static Figures fork(String method, boolean quick) throws RunnerException {
    Options options =
        new OptionsBuilder()
            .include("^" + SUITE.replace(".", "\\.") + "\\." + method + "$")
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
      throw new RunnerException(SUITE + "." + method + ": " + results.size() + " benchmarks found");
    }
    RunResult result = results.iterator().next();
    return Figures.none()
        .with(WALL, result.getPrimaryResult().getScore())
        .with("cpu", secondary(result, CpuProfiler.LABEL))
        .with("bytes", secondary(result, "gc.alloc.rate.norm"));
  }

  private static double secondary(RunResult result, String label) {
    Result<?> found = result.getSecondaryResults().get(label);
    return found == null ? Double.NaN : found.getScore();
  }

  private static void print(BenchRun run, Contest<String> contest) {
    TextTable table =
        new TextTable(
            "a bounded Mono",
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
          contest.of(method, "cpu").cell("%.1f ns"),
          contest.of(method, "bytes").cell("%.0f B"));
    }
    run.out().println();
    run.out().println(table);
  }
}
