package dev.timebound.bench;

import dev.timebound.cas.Digest;
import dev.timebound.demo.Logs;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/**
 * A JVM that reads all small blobs again and again in one mode: {@code mode port warmUpSeconds
 * measuredSeconds}. Its figures are over the measured time: blobs a second, and CPU of the whole
 * process and bytes allocated by a blob.
 */
final class CasSmallMain {
  private CasSmallMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    List<Digest> digests = CasReplies.smallDigests();
    CasSmallMode.Reader reader = CasSmallMode.valueOf(args[0]).connect(Integer.parseInt(args[1]));
    readFor(reader, digests, Long.parseLong(args[2]));
    Usage start = Usage.now();
    double blobs = readFor(reader, digests, Long.parseLong(args[3]));
    Usage used = Usage.now().since(start);
    System.out.println(
        Figures.none()
            .with("blobs_per_s", blobs / used.wallNanos() * 1e9)
            .with("cpu_us", used.cpuNanos() / blobs / 1e3)
            .with("allocated", used.allocatedBytes() / blobs));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static long readFor(CasSmallMode.Reader reader, List<Digest> digests, long seconds) {
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    long blobs = 0;
    while (System.nanoTime() < until) {
      long right = Objects.requireNonNull(reader.read(digests).block());
      if (right != digests.size()) {
        throw new IllegalStateException(right + " blobs of " + digests.size() + " were right");
      }
      blobs += right;
    }
    return blobs;
  }
}
