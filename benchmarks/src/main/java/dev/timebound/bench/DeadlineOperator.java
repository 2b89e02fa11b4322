package dev.timebound.bench;

import java.util.List;

/**
 * {@code deadline-operator}: a Mono bounded by a deadline against Reactor's own {@code
 * timeout(Duration)} (DL-9). The two take turns, one JMH fork at a time; the median fork counts.
 */
final class DeadlineOperator implements Benchmark {
  private static final String SUITE = "dev.timebound.bench.DeadlineOperatorBench";
  private static final String OURS = "timebound";
  private static final String PEER = "reactor";

  @Override
  public String name() {
    return "deadline-operator";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<String> contest = JmhContest.run(run, SUITE, List.of(OURS, PEER), 5);
    run.out().println();
    run.out().println(JmhContest.table("a bounded Mono", contest));
    run.ratio(name(), contest.ratio(PEER, OURS, JmhContest.WALL));
  }
}
