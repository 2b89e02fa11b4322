package dev.timebound.fetch.segments;

import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;

/** Work on the disk that nobody waits for but the store's end. Thread-safe. */
final class Background {
  private final Scheduler io;
  private final Sinks.Empty<Void> idle = Sinks.empty();

  /** Tasks under way, and one until it ends. */
  private final AtomicInteger running = new AtomicInteger(1);

  Background(Scheduler io) {
    this.io = io;
  }

  void run(Runnable task) {
    running.incrementAndGet();
    try {
      io.schedule(
          () -> {
            try {
              task.run();
            } finally {
              done();
            }
          });
    } catch (RuntimeException e) {
      done();
      throw e;
    }
  }

  /** Completes when nothing is under way any more; to be called once. */
  Mono<Void> end() {
    return Mono.defer(
        () -> {
          done();
          return idle.asMono();
        });
  }

  private void done() {
    if (running.decrementAndGet() == 0) {
      idle.tryEmitEmpty();
    }
  }
}
