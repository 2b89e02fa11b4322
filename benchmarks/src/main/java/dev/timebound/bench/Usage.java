package dev.timebound.bench;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/**
 * What this JVM has used so far.
 *
 * @param cpuNanos CPU time of the whole process: its own threads, the compiler's and the
 *     collector's
 * @param allocatedBytes bytes allocated by the threads that live now
 * @param wallNanos the clock
 */
record Usage(long cpuNanos, long allocatedBytes, long wallNanos) {
  private static final OperatingSystemMXBean OS =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  static Usage now() {
    long allocated = 0;
    for (long bytes : THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds())) {
      allocated += Math.max(0, bytes); // -1: the thread has just ended
    }
    return new Usage(OS.getProcessCpuTime(), allocated, System.nanoTime());
  }

  /** What was used since an earlier moment. */
  Usage since(Usage earlier) {
    return new Usage(
        cpuNanos - earlier.cpuNanos,
        allocatedBytes - earlier.allocatedBytes,
        wallNanos - earlier.wallNanos);
  }
}
