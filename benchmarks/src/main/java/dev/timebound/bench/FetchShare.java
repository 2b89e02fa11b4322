package dev.timebound.bench;

import java.util.List;
import java.util.Locale;

/**
 * {@code fetch-share}: what the sharing itself costs, a partition's read: through the fetcher, and
 * from the same store with nothing that bounds a read. Its ratio is how many times the difference
 * goes into 5 µs, so that more than 1 is within what it is meant to cost.
 */
final class FetchShare implements Benchmark {
  private static final String SUITE = "dev.timebound.bench.FetchShareBench";
  private static final String OURS = "parallel";
  private static final String HALVING = "halving";
  private static final String PLAIN = "plain";
  private static final double BAR_NS = 5_000;

  @Override
  public String name() {
    return "fetch-share";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<String> contest = JmhContest.run(run, SUITE, List.of(OURS, HALVING, PLAIN), 5);
    run.out().println();
    run.out().println(JmhContest.table("a partition's read of 64 KiB", contest));
    run.out().println("The sharing itself, a partition's read:");
    for (String ours : List.of(OURS, HALVING)) {
      run.out()
          .printf(
              Locale.ROOT,
              "  %-10s %.2f us, %,.0f bytes allocated%n",
              ours,
              overhead(contest, ours, JmhContest.WALL) / 1e3,
              overhead(contest, ours, JmhContest.BYTES));
    }
    run.ratio(name(), BAR_NS / overhead(contest, OURS, JmhContest.WALL));
  }

  private static double overhead(Contest<String> contest, String ours, String what) {
    return contest.of(ours, what).median() - contest.of(PLAIN, what).median();
  }
}
