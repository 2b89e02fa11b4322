package dev.timebound.pg;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/** A result whose rows end with the session's deadline, and the session with them. (PG-13) */
final class BoundedResult implements Result {
  private final Result of;
  private final ReadSession session;

  BoundedResult(Result of, ReadSession session) {
    this.of = of;
    this.session = session;
  }

  @Override
  public Publisher<Long> getRowsUpdated() {
    return bounded(of.getRowsUpdated());
  }

  @Override
  public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
    return bounded(of.map(mapping));
  }

  @Override
  public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
    return bounded(of.map(mapping));
  }

  @Override
  public Result filter(Predicate<Segment> filter) {
    return new BoundedResult(of.filter(filter), session);
  }

  @Override
  public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
    return bounded(of.flatMap(mapping));
  }

  private <T> Flux<T> bounded(Publisher<T> rows) {
    return Flux.from(Deadlines.<T>of(session.deadline(), "pg.read").apply(rows))
        .doOnError(DeadlineExceededException.class, e -> session.end(false));
  }
}
