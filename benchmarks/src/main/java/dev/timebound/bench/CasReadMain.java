package dev.timebound.bench;

import dev.timebound.cas.Digest;
import dev.timebound.demo.Logs;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * A JVM that reads the large blob again and again in one mode, two at a time: {@code mode instance
 * port warmUpSeconds measuredSeconds}. Its figures are over the measured time: MB a second, and CPU
 * of the whole process and bytes allocated by a byte read.
 */
final class CasReadMain {
  private static final int READERS = 2;

  private CasReadMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    CasReadMode mode = CasReadMode.valueOf(args[0]);
    Digest digest = Digest.of(CasReplies.large());
    CasReadMode.Reader reader = mode.connect(Integer.parseInt(args[2]), args[1]);
    LongAdder blobs = new LongAdder();
    AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    for (int i = 0; i < READERS; i++) {
      readForEver(reader, digest, blobs, failure);
    }
    TimeUnit.SECONDS.sleep(Long.parseLong(args[3]));
    long before = blobs.sum();
    Usage start = Usage.now();
    TimeUnit.SECONDS.sleep(Long.parseLong(args[4]));
    Usage used = Usage.now().since(start);
    double bytes = (blobs.sum() - before) * (double) CasReplies.LARGE_BYTES;
    Throwable failed = failure.get();
    if (failed != null || bytes == 0) {
      throw new IllegalStateException(mode + " failed, " + bytes + " bytes read", failed);
    }
    System.out.println(
        Figures.none()
            .with("mb_per_s", bytes / used.wallNanos() * 1e3)
            .with("cpu_ns", used.cpuNanos() / bytes)
            .with("allocated", used.allocatedBytes() / bytes));
    System.out.flush();
    // it reads for ever
    Runtime.getRuntime().halt(0);
  }

  private static void readForEver(
      CasReadMode.Reader reader,
      Digest digest,
      LongAdder blobs,
      AtomicReference<@Nullable Throwable> failure) {
    // told by its callback alone
    var unused =
        reader
            .read(digest)
            .whenComplete(
                (bytes, error) -> {
                  if (error != null || bytes != CasReplies.LARGE_BYTES) {
                    failure.set(new IllegalStateException("read " + bytes, error));
                  } else {
                    blobs.increment();
                    readForEver(reader, digest, blobs, failure);
                  }
                });
  }
}
