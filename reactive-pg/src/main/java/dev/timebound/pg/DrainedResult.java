package dev.timebound.pg;

import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A result whose rows are taken in to their end where the caller leaves before, and mapped by
 * nobody then: see {@link Drained}. Of a statement that fetches its rows in portions the driver
 * ends the portal itself, and well; to take those in would be to fetch them all.
 */
final class DrainedResult implements Result {
  private static final Object UNSEEN = new Object();

  private final Result of;
  private final UnaryOperator<Result> shape;

  private DrainedResult(Result of, UnaryOperator<Result> shape) {
    this.of = of;
    this.shape = shape;
  }

  static Result of(Result result, Execution what) {
    return what.isStreamed() ? result : new DrainedResult(result, r -> r);
  }

  @Override
  public Publisher<Long> getRowsUpdated() {
    return consumed((r, left) -> r.getRowsUpdated());
  }

  @Override
  public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
    return consumed(
        (r, left) ->
            r.map((row, metadata) -> left.isLeft() ? unseen() : mapping.apply(row, metadata)));
  }

  @Override
  public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
    return consumed((r, left) -> r.map(row -> left.isLeft() ? unseen() : mapping.apply(row)));
  }

  /** For a row whose caller has left: it is let go behind the mapping. */
  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  private static <T> T unseen() {
    return (T) UNSEEN;
  }

  @Override
  public Result filter(Predicate<Segment> filter) {
    return new DrainedResult(of, r -> shape.apply(r).filter(filter));
  }

  @Override
  public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
    return consumed(
        (r, left) ->
            r.flatMap(segment -> left.isLeft() ? Mono.<T>empty() : mapping.apply(segment)));
  }

  private <T> Flux<T> consumed(BiFunction<Result, Drained.Left, Publisher<T>> use) {
    return Flux.defer(
        () -> {
          Drained.Left left = new Drained.Left();
          return new Drained<T>(use.apply(shape.apply(of), left), left, row -> {});
        });
  }
}
