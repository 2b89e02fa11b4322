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

/**
 * A result whose statement the driver sends when it is consumed, as it does where parameters are
 * bound: it cannot wait for the verdict, or it would be sent a round trip late. So it is consumed
 * at once, and nothing of it is seen by anyone before the verdict. (PG-10)
 */
final class ProvedResult implements Result {
  private final Result of;
  private final Verdict verdict;
  private final Function<Throwable, Flux<Result>> unproved;

  /** Filters of the result here, which see nothing before the verdict, and of the other one. */
  private final UnaryOperator<Result> shape;

  private final UnaryOperator<Result> otherShape;

  /**
   * @param unproved what is consumed in its place where the read is refused, for that cause
   */
  ProvedResult(Result of, Verdict verdict, Function<Throwable, Flux<Result>> unproved) {
    this(of, verdict, unproved, r -> r, r -> r);
  }

  private ProvedResult(
      Result of,
      Verdict verdict,
      Function<Throwable, Flux<Result>> unproved,
      UnaryOperator<Result> shape,
      UnaryOperator<Result> otherShape) {
    this.of = of;
    this.verdict = verdict;
    this.unproved = unproved;
    this.shape = shape;
    this.otherShape = otherShape;
  }

  @Override
  public Publisher<Long> getRowsUpdated() {
    return consumed(Result::getRowsUpdated, Result::getRowsUpdated);
  }

  @Override
  public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
    return consumed(
        r ->
            r.map(
                (row, metadata) -> {
                  verdict.letThrough();
                  return mapping.apply(row, metadata);
                }),
        r -> r.map(mapping));
  }

  @Override
  public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
    return consumed(
        r ->
            r.map(
                row -> {
                  verdict.letThrough();
                  return mapping.apply(row);
                }),
        r -> r.map(mapping));
  }

  @Override
  public Result filter(Predicate<Segment> filter) {
    return new ProvedResult(
        of,
        verdict,
        unproved,
        r ->
            shape
                .apply(r)
                .filter(
                    segment -> {
                      verdict.letThrough();
                      return filter.test(segment);
                    }),
        r -> otherShape.apply(r).filter(filter));
  }

  @Override
  public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
    return consumed(
        r ->
            r.flatMap(
                segment -> {
                  verdict.letThrough();
                  return mapping.apply(segment);
                }),
        r -> r.flatMap(mapping));
  }

  private <T> Flux<T> consumed(
      Function<Result, Publisher<T>> here, Function<Result, Publisher<T>> elsewhere) {
    Flux<T> rows = Flux.<T>from(here.apply(shape.apply(of))).onErrorMap(verdict::cause);
    return Flux.firstWithSignal(verdict.<T>refusal(), rows)
        .onErrorResume(
            UnprovedException.class,
            e ->
                unproved
                    .apply(e.getCause())
                    .concatMap(result -> elsewhere.apply(otherShape.apply(result))));
  }
}
