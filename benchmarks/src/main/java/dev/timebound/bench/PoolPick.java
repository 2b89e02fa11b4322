package dev.timebound.bench;

import java.util.List;

/**
 * {@code pool-pick}: a choice among 200 members, its claim and its end, against a bare scan of 200
 * volatile counters (HE-2, HE-5).
 */
final class PoolPick implements Benchmark {
  private static final String SUITE = "dev.timebound.bench.PoolPickBench";
  private static final String OURS = "timebound";
  private static final String PEER = "scan";

  @Override
  public String name() {
    return "pool-pick";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<String> contest = JmhContest.run(run, SUITE, List.of(OURS, PEER), 5);
    run.out().println();
    run.out().println(JmhContest.table("a choice among 200", contest));
    run.ratio(name(), contest.ratio(PEER, OURS, JmhContest.WALL));
  }
}
