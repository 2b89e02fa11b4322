package dev.timebound.fetch;

import java.util.Queue;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.util.concurrent.Queues;

/**
 * Runs steps one after the other, in the order they were offered: on the offering thread, or, where
 * another is at it, on that one. Nobody waits. A step must not throw.
 */
final class Serial {
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
        next.run();
      }
      missed = wip.addAndGet(-missed);
    } while (missed != 0);
  }
}
