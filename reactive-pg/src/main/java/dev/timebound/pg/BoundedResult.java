package dev.timebound.pg;

import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/** A result whose rows are put under a bound, whichever way they are asked for. (PG-13) */
final class BoundedResult implements Result {
  private final Result of;
  private final Bound bound;

  BoundedResult(Result of, Bound bound) {
    this.of = of;
    this.bound = bound;
  }

  @Override
  public Publisher<Long> getRowsUpdated() {
    return bound.apply(of.getRowsUpdated());
  }

  @Override
  public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
    return bound.apply(of.map(mapping));
  }

  @Override
  public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
    return bound.apply(of.map(mapping));
  }

  @Override
  public Result filter(Predicate<Segment> filter) {
    return new BoundedResult(of.filter(filter), bound);
  }

  @Override
  public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
    return bound.apply(of.flatMap(mapping));
  }

  /** What is done to a sequence of rows. */
  interface Bound {
    <T> Flux<T> apply(Publisher<T> rows);
  }
}
