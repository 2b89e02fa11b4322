package dev.timebound.bench;

/** One comparison of ours with a peer. It measures and tells; it never judges. */
interface Benchmark {

  /** Its name on the command line, and how its RATIO lines begin. */
  String name();

  /** Runs it to its end. */
  void run(BenchRun run) throws Exception;
}
