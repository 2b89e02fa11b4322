package dev.timebound.bench;

import java.util.List;

/**
 * {@code cas-lookup}: a digest's home among ten shards, beside a TreeMap of 100 points a shard
 * (CAS-10).
 */
final class CasLookup implements Benchmark {
  private static final String SUITE = "dev.timebound.bench.CasLookupBench";
  private static final String OURS = "timebound";
  private static final String PEER = "treeMap";

  @Override
  public String name() {
    return "cas-lookup";
  }

  @Override
  public void run(BenchRun run) throws Exception {
    Contest<String> contest = JmhContest.run(run, SUITE, List.of(OURS, PEER), 5);
    run.out().println();
    run.out().println(JmhContest.table("a home among ten", contest));
    run.ratio(name(), contest.ratio(PEER, OURS, JmhContest.WALL));
  }
}
