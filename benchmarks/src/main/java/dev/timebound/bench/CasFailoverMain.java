package dev.timebound.bench;

import dev.timebound.cas.CasConfig;
import dev.timebound.cas.CasRing;
import dev.timebound.cas.Digest;
import dev.timebound.deadline.Deadlines;
import dev.timebound.demo.Logs;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/**
 * A JVM that reads small blobs, one after the other, from a ring of two shards that both have them
 * all, with the home healthy ({@code healthy}) or frozen and known to be ({@code suspect}): {@code
 * mode firstPort secondPort reads}. Its figures are the time to the first byte.
 */
final class CasFailoverMain {
  static final String HEALTHY = "healthy";
  static final String SUSPECT = "suspect";

  private static final long LARGEST_NANOS = TimeUnit.MINUTES.toNanos(1);
  private static final int WARM_UP = 3_000;
  private static final Duration TIME = Duration.ofSeconds(4);

  /** Long enough that no trial falls into the measured reads. */
  private static final Duration COOLDOWN = Duration.ofMinutes(10);

  private CasFailoverMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    boolean suspect = args[0].equals(SUSPECT);
    int reads = Integer.parseInt(args[3]);
    FaultProxy first = FaultProxy.to("localhost", Integer.parseInt(args[1]));
    FaultProxy second = FaultProxy.to("localhost", Integer.parseInt(args[2]));
    CasConfig config =
        new CasConfig(
            List.of(
                CasConfig.Shard.of("first", first.hostAndPort()),
                CasConfig.Shard.of("second", second.hostAndPort())));
    CasRing ring = CasRing.builder(config).cooldown(COOLDOWN).build();
    // all of them at home on the first shard
    List<Digest> digests =
        CasReplies.smallDigests().stream()
            .filter(digest -> config.weighted().home(digest) == 0)
            .toList();
    for (int i = 0; i < WARM_UP; i++) {
      firstByte(ring, digests.get(i % digests.size()));
    }
    if (suspect) {
      first.freezeAll();
      for (int i = 0; isHealthy(ring); i++) {
        firstByte(ring, digests.get(i % digests.size()));
      }
      for (int i = 0; i < WARM_UP; i++) {
        firstByte(ring, digests.get(i % digests.size()));
      }
    }
    Histogram latency = new Histogram(1, LARGEST_NANOS, 3);
    for (int i = 0; i < reads; i++) {
      long nanos = firstByte(ring, digests.get(i % digests.size()));
      latency.recordValue(Math.min(LARGEST_NANOS, nanos));
    }
    if (suspect == isHealthy(ring)) {
      throw new IllegalStateException("the home is not what it should be: " + args[0]);
    }
    System.out.println(
        Figures.none()
            .with("p50_us", latency.getValueAtPercentile(50) / 1e3)
            .with("p99_us", latency.getValueAtPercentile(99) / 1e3));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static boolean isHealthy(CasRing ring) {
    return ring.health().members().stream()
        .filter(member -> member.name().equals("first"))
        .map(MemberHealth::status)
        .allMatch(MemberStatus.HEALTHY::equals);
  }

  /** Nanoseconds. */
  private static long firstByte(CasRing ring, Digest digest) {
    long began = System.nanoTime();
    return Objects.requireNonNull(
        ring.read(digest)
            .map(chunk -> System.nanoTime() - began)
            .transform(Deadlines.within(TIME))
            .blockLast());
  }
}
