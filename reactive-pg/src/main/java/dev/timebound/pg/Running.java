package dev.timebound.pg;

import io.r2dbc.spi.Result;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/** Counts the statements of a session whose results have not ended. Thread-safe. */
final class Running {
  private volatile AtomicInteger count = new AtomicInteger();

  boolean any() {
    return count.get() > 0;
  }

  /** What runs now is nobody's concern here any more, nor is its end. */
  void forget() {
    count = new AtomicInteger();
  }

  /**
   * One begins.
   *
   * @return to be run when it has ended; more than once does no harm
   */
  Runnable begun() {
    AtomicInteger counted = count;
    counted.incrementAndGet();
    AtomicBoolean ended = new AtomicBoolean();
    return () -> {
      if (ended.compareAndSet(false, true)) {
        counted.decrementAndGet();
      }
    };
  }

  /**
   * Counts it from now until its results, and the rows of a single one, have ended.
   *
   * @param seen a result as its caller sees it; given what to run when its rows have ended, null
   *     where more results may follow it
   */
  Flux<Result> watched(
      Publisher<? extends Result> results,
      Execution what,
      BiFunction<Result, @Nullable Runnable, Result> seen) {
    Runnable done = begun();
    Flux<Result> all = Flux.from(results);
    // one that is sent late has not even begun when its result is there
    return (what.isSentLate() ? all.doOnError(e -> done.run()) : all.doOnTerminate(done))
        .map(result -> seen.apply(result, what.isSingle() ? done : null));
  }
}
