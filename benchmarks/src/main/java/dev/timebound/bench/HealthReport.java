package dev.timebound.bench;

import java.util.List;

/**
 * {@code health-report}: the reports of one message (its caller waits, it comes in, the wait is
 * over) against one atomic add (HE-2).
 */
final class HealthReport implements Benchmark {
  private static final String SUITE = "dev.timebound.bench.HealthReportBench";
  private static final String OURS = "timebound";
  private static final String PEER = "add";

  @Override
  public String name() {
    return "health-report";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<String> contest = JmhContest.run(run, SUITE, List.of(OURS, "progress", PEER), 5);
    run.out().println();
    run.out().println(JmhContest.table("what a message pays", contest));
    run.ratio(name(), contest.ratio(PEER, OURS, JmhContest.WALL));
  }
}
