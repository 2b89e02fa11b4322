package dev.timebound.bench;

import dev.timebound.cas.Digest;
import dev.timebound.cas.ShardSelector;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What finding a digest's home among ten shards costs; beside it a TreeMap of 100 points a shard
 * that the digest's hash is looked up in, as rings are often built (CAS-10).
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class CasLookupBench {
  private static final int SHARDS = 10;
  private static final int POINTS = 100;
  private static final int DIGESTS = 1_024;

  private final ShardSelector selector =
      ShardSelector.weighted(new int[] {1, 1, 2, 1, 1, 3, 1, 1, 1, 1});
  private final TreeMap<Integer, Integer> points = new TreeMap<>();
  private final Digest[] digests = new Digest[DIGESTS];
  private int next;

  /** Digests to look up, and the map's points. */
  @Setup(Level.Trial)
  public void fill() {
    Random random = new Random(1);
    for (int i = 0; i < DIGESTS; i++) {
      byte[] content = new byte[16];
      random.nextBytes(content);
      digests[i] = Digest.of(content);
    }
    for (int i = 0; i < SHARDS * POINTS; i++) {
      points.put(random.nextInt(), i % SHARDS);
    }
  }

  private Digest digest() {
    next = (next + 1) & (DIGESTS - 1);
    return digests[next];
  }

  /** Ours. */
  @Benchmark
  public int timebound() {
    return selector.home(digest());
  }

  /** The map's. */
  @Benchmark
  public int treeMap() {
    Map.Entry<Integer, Integer> point = points.ceilingEntry(digest().hashCode());
    return (point == null ? points.firstEntry() : point).getValue();
  }
}
