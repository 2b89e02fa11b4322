package dev.timebound.health;

import java.util.Queue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Exceptions;
import reactor.util.concurrent.Queues;

/**
 * Handles items one after the other, in the order they were offered, on the threads that offer
 * them: on the offering thread itself, or, where another is at it, on that one. Nobody waits.
 */
final class Serial<T> {
  private static final Logger log = LoggerFactory.getLogger(HealthEngine.class);

  private final Queue<T> items = Queues.<T>unboundedMultiproducer().get();
  private final AtomicInteger wip = new AtomicInteger();
  private final Consumer<? super T> handler;

  Serial(Consumer<? super T> handler) {
    this.handler = handler;
  }

  void offer(T item) {
    items.offer(item);
    if (wip.getAndIncrement() != 0) {
      return;
    }
    int missed = 1;
    do {
      T next;
      while ((next = items.poll()) != null) {
        guarded(handler, next);
      }
      missed = wip.addAndGet(-missed);
    } while (missed != 0);
  }

  /** What one item throws is the log's; the next is handled all the same. */
  private static <T> void guarded(Consumer<? super T> handler, T item) {
    try {
      handler.accept(item);
    } catch (Throwable e) {
      Exceptions.throwIfJvmFatal(e);
      log.error("health: a report was lost: {}", item, e);
    }
  }
}
