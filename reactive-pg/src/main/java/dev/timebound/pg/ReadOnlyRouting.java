package dev.timebound.pg;

import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * Routes what a pipeline reads through {@link RoutingConnectionFactory} without a transaction: a
 * connection obtained under it runs its statements in a read-only transaction of its own, on a
 * reader where one can serve it. For repositories called outside a transaction, which would run on
 * the writer; a transaction that is begun under it is as its own definition says. A statement that
 * writes fails.
 *
 * <pre>{@code
 * orders.findByCustomer(id).transform(ReadOnlyRouting.readOnly());
 * }</pre>
 */
public final class ReadOnlyRouting {
  private static final Object KEY = ReadOnlyRouting.class;

  private ReadOnlyRouting() {}

  /** A Mono stays a Mono, a Flux a Flux. */
  public static <T> UnaryOperator<Publisher<T>> readOnly() {
    return readOnly(ReadOptions.defaults());
  }

  /** The same, with what each such read asks of its route. */
  public static <T> UnaryOperator<Publisher<T>> readOnly(ReadOptions options) {
    Settings.required("options", options);
    return source ->
        source instanceof Mono<T> mono
            ? mono.contextWrite(context -> put(context, options))
            : Flux.from(source).contextWrite(context -> put(context, options));
  }

  private static Context put(Context context, ReadOptions options) {
    return context.put(KEY, options);
  }

  /** Null where plain statements are the writer's. */
  static @Nullable ReadOptions options(ContextView context) {
    return context.<ReadOptions>getOrDefault(KEY, null);
  }
}
