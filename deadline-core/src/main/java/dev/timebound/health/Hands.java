package dev.timebound.health;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Exceptions;
import reactor.core.scheduler.Scheduler;

/** Runs foreign code for a group, on a worker of its own, one after the other. */
final class Hands {
  private static final Logger log = LoggerFactory.getLogger(HealthEngine.class);

  private final String group;
  private final Scheduler.Worker worker;

  /** What a worker that is disposed would drop. */
  private final Queue<Runnable> sure = new ConcurrentLinkedQueue<>();

  private volatile boolean gone;

  Hands(String group, Scheduler.Worker worker) {
    this.group = group;
    this.worker = worker;
  }

  /** Where the Scheduler still takes it. */
  void later(Runnable task) {
    try {
      worker.schedule(() -> guarded(task));
    } catch (RejectedExecutionException disposed) {
      log.debug("health group {}: closed, a callback is dropped", group);
    }
  }

  /** What someone waits for: on this thread where the Scheduler is gone. */
  void surely(Runnable task) {
    sure.offer(task);
    try {
      worker.schedule(this::drain);
    } catch (RejectedExecutionException disposed) {
      drain();
      return;
    }
    // either this sees that the worker is gone, or who disposes of it sees the task
    if (gone) {
      drain();
    }
  }

  private void drain() {
    Runnable task;
    while ((task = sure.poll()) != null) {
      guarded(task);
    }
  }

  /** Here and now; what it throws is the log's. */
  void guarded(Runnable task) {
    try {
      task.run();
    } catch (Throwable e) {
      Exceptions.throwIfJvmFatal(e);
      log.warn("health group {}: a callback failed", group, e);
    }
  }

  /** Behind all that is queued. */
  void close() {
    try {
      worker.schedule(this::dispose);
    } catch (RejectedExecutionException disposed) {
      dispose();
    }
  }

  private void dispose() {
    worker.dispose();
    gone = true;
    drain();
  }
}
