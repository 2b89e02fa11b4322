package dev.timebound.bench;

import java.util.Collection;
import java.util.List;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/** For JMH: CPU time of the whole process an operation, beside the wall time that JMH measures. */
public final class CpuProfiler implements InternalProfiler {
  static final String LABEL = "cpu.process";

  private Usage before = new Usage(0, 0, 0);

  @Override
  public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
    before = Usage.now();
  }

  @Override
  public Collection<? extends Result<?>> afterIteration(
      BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
    long operations = Math.max(1, result.getMetadata().getAllOps());
    double nanos = (double) Usage.now().since(before).cpuNanos() / operations;
    return List.of(new ScalarResult(LABEL, nanos, "ns/op", AggregationPolicy.AVG));
  }

  @Override
  public String getDescription() {
    return "CPU time of the process, per operation";
  }
}
