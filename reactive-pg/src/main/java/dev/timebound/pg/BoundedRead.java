package dev.timebound.pg;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.r2dbc.spi.Result;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/**
 * A read session's statements with an end put to them by the session's deadline: nobody else does
 * it where a framework calls. (PG-13)
 */
final class BoundedRead implements BoundedResult.Bound {
  private final ReadSession session;

  /** The session is one statement's alone and ends with it, which this is told; else null. */
  private final @Nullable Runnable over;

  BoundedRead(ReadSession session, @Nullable Runnable over) {
    this.session = session;
    this.over = over;
  }

  Flux<Result> execute(Execution what) {
    // one that is the session's only one is over with the last of its results
    Flux<Result> results = bounded(over == null ? session.execute(what) : session.whole(what));
    // of several results the last one's end is not known; one that is sent late ends with its rows
    BoundedRead rows = what.isSingle() ? this : new BoundedRead(session, null);
    return (what.isSentLate() ? results.doOnError(e -> over()) : results.doOnTerminate(this::over))
        .map(result -> new BoundedResult(result, rows));
  }

  @Override
  public <T> Flux<T> apply(Publisher<T> rows) {
    return bounded(rows).doOnTerminate(this::over);
  }

  private <T> Flux<T> bounded(Publisher<T> part) {
    return Flux.from(Deadlines.<T>of(session.deadline(), "pg.read").apply(part))
        .doOnError(DeadlineExceededException.class, e -> passed());
  }

  private void over() {
    if (over != null) {
      session.end(true);
      over.run();
    }
  }

  /** A narrower bound, of one statement within a transaction, does not end the transaction. */
  private void passed() {
    if (session.deadline().isExpired()) {
      session.end(false);
    }
  }
}
