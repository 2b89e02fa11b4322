package dev.timebound.fetch;

import java.util.Queue;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Exceptions;
import reactor.util.concurrent.Queues;

/**
 * Runs steps one after the other, in the order they were offered: on the offering thread, or, where
 * another is at it, on that one. Nobody waits.
 */
final class Serial {
  private static final Logger LOG = LoggerFactory.getLogger(PartitionFetcher.class);

  private final Queue<Runnable> steps = Queues.<Runnable>unboundedMultiproducer().get();
  private final AtomicInteger wip = new AtomicInteger();

  void run(Runnable step) {
    steps.offer(step);
    if (wip.getAndIncrement() != 0) {
      return;
    }
    int missed = 1;
    do {
      Runnable next;
      while ((next = steps.poll()) != null) {
        guarded(next);
      }
      missed = wip.addAndGet(-missed);
    } while (missed != 0);
  }

  /** What one step throws is the log's; the next is taken all the same. */
  private static void guarded(Runnable step) {
    try {
      step.run();
    } catch (Throwable e) {
      Exceptions.throwIfJvmFatal(e);
      LOG.error("fetch: a step was lost", e);
    }
  }
}
