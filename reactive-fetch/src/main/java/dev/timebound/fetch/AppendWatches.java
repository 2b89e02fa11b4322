package dev.timebound.fetch;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.IntConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;

/** The appends that one request waits for: each wake-up is told once, and not by the appender. */
final class AppendWatches {
  private static final Logger LOG = LoggerFactory.getLogger(PartitionFetcher.class);

  private final PartitionStore store;
  private final RunTimer timer;
  private final IntConsumer due;

  /**
   * @param due is told of a partition, by its number in the request, on the request's scheduler
   */
  AppendWatches(PartitionStore store, RunTimer timer, IntConsumer due) {
    this.store = store;
    this.timer = timer;
    this.due = due;
  }

  /** Empty where the store cannot tell, or does not now: it is asked again after pauses. */
  Optional<Disposable> watch(int index, TopicPartition partition) {
    AtomicBoolean pending = new AtomicBoolean();
    try {
      return store.onAppend(partition, () -> wake(index, pending));
    } catch (RuntimeException thrown) {
      LOG.debug("{}: appends go unnoticed until it is asked again", partition, thrown);
      return Optional.empty();
    }
  }

  /** On the appender's thread, which has work of its own. */
  private void wake(int index, AtomicBoolean pending) {
    if (pending.compareAndSet(false, true)) {
      timer.after(
          0,
          () -> {
            pending.set(false);
            due.accept(index);
          });
    }
  }
}
