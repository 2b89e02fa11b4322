package dev.timebound.pg;

import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/**
 * A result of a routed read. One of the first statement that has brought nothing yet when its
 * reader goes out, or its replica ends the statement for its recovery's sake, is taken from the
 * writer instead. (PG-11a, PG-12)
 */
final class RoutedResult implements Result {
  private final Result of;
  private final ReadSession session;

  /** What to execute on the writer; null where this result is not to be had there. */
  private final @Nullable Execution again;

  /** To be run when this result has been consumed; null where more follow it. */
  private final @Nullable Runnable done;

  private final UnaryOperator<Result> shape;

  RoutedResult(Result of, ReadSession session, @Nullable Execution again, @Nullable Runnable done) {
    this(of, session, again, done, r -> r);
  }

  private RoutedResult(
      Result of,
      ReadSession session,
      @Nullable Execution again,
      @Nullable Runnable done,
      UnaryOperator<Result> shape) {
    this.of = of;
    this.session = session;
    this.again = again;
    this.done = done;
    this.shape = shape;
  }

  @Override
  public Publisher<Long> getRowsUpdated() {
    return consumed(Result::getRowsUpdated);
  }

  @Override
  public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
    return consumed(r -> r.map(mapping));
  }

  @Override
  public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
    return consumed(r -> r.map(mapping));
  }

  @Override
  public Result filter(Predicate<Segment> filter) {
    return new RoutedResult(of, session, again, done, r -> shape.apply(r).filter(filter));
  }

  @Override
  public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
    return consumed(r -> r.flatMap(mapping));
  }

  private <T> Flux<T> consumed(Function<Result, Publisher<T>> use) {
    Flux<T> here =
        Flux.<T>defer(() -> use.apply(shape.apply(of)))
            .onErrorMap(SqlStates::ofSource)
            .doOnError(session::failed);
    if (done != null) {
      here = here.doOnTerminate(done);
    }
    Execution what = again;
    if (what == null) {
      return here.contextWrite(Quiet::in);
    }
    return Flux.firstWithSignal(here, session.<T>quarantineSignal())
        .switchOnFirst(
            (signal, rows) -> {
              Throwable e = signal.getThrowable();
              RouteReason reason = e == null ? null : SqlStates.failsOver(e);
              return reason == null
                  ? rows
                  : session.onWriter(what, reason).concatMap(r -> use.apply(shape.apply(r)));
            })
        .doOnError(session::unbound)
        .doOnCancel(session::givenUp)
        // a switch that is given up at its first signal drops an error too
        .contextWrite(Quiet::in);
  }
}
