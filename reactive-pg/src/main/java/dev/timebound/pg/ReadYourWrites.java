package dev.timebound.pg;

import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * Lets every routed read of a pipeline see what the pipeline wrote before, with no code in between:
 * a write under {@link #scope} notes the writer's position, and a later read under the same scope
 * takes it as its fence. The position goes to the next request of the same client as a short token,
 * in a header or a cookie. (PG-21)
 *
 * <pre>{@code
 * service.placeOrder(order)                          // writes, then reads
 *     .transform(ReadYourWrites.scope(request.getHeader("X-Read-After")));
 * }</pre>
 *
 * <p>Each subscription has a scope of its own; one inside another shares the outer one's.
 */
public final class ReadYourWrites {
  private static final Object KEY = ReadYourWrites.class;
  private static final String VERSION = "1-";

  /** Past every position. */
  private static final long UNKNOWN = -1;

  private ReadYourWrites() {}

  /** What a token that is none is taken for. */
  public enum Malformed {
    /** No fence: the reads may be stale. */
    IGNORE,
    /** An error of the pipeline, {@link IllegalArgumentException}. */
    REFUSE
  }

  /** A scope that begins with no fence. A Mono stays a Mono, a Flux a Flux. */
  public static <T> UnaryOperator<Publisher<T>> scope() {
    return scope(null);
  }

  /**
   * A scope that begins with what a token says; null or one that is malformed says nothing.
   *
   * @param token as {@link #token} gave it
   */
  public static <T> UnaryOperator<Publisher<T>> scope(@Nullable String token) {
    return scope(token, Malformed.IGNORE);
  }

  /** The same, with what a malformed token is to mean. */
  public static <T> UnaryOperator<Publisher<T>> scope(@Nullable String token, Malformed malformed) {
    return source ->
        source instanceof Mono<T> mono
            ? Mono.defer(() -> scoped(mono, parse(token, malformed)))
            : Flux.defer(() -> scoped(Flux.from(source), parse(token, malformed)));
  }

  /**
   * The position that the next request should see, as a token of at most 18 characters of {@code
   * [0-9A-Z-]}; empty where nothing was written, or no scope is there. To be read after the writes,
   * inside the scope: {@code Mono.deferContextual(ctx -> … ReadYourWrites.token(ctx) …)}.
   */
  public static Optional<String> token(ContextView context) {
    Scope scope = of(context);
    long lsn = scope == null ? 0 : scope.position.get();
    return lsn == 0
        ? Optional.empty()
        : Optional.of(VERSION + Long.toHexString(lsn).toUpperCase(Locale.ROOT));
  }

  /**
   * What reads under this Context must see; {@link Fence#none()} where there is nothing. While the
   * position of a write is not known yet it is one that no reader has: such reads are the writer's.
   */
  public static Fence fence(ContextView context) {
    Scope scope = of(context);
    if (scope == null) {
      return Fence.none();
    }
    long lsn = scope.unsettled.get() > 0 ? UNKNOWN : scope.position.get();
    return lsn == 0 ? Fence.none() : Fence.at(lsn);
  }

  /** Null where nobody wants to know. */
  static @Nullable Scope of(ContextView context) {
    return context.<Scope>getOrDefault(KEY, null);
  }

  private static long later(long a, long b) {
    return Long.compareUnsigned(a, b) >= 0 ? a : b;
  }

  private static long parse(@Nullable String token, Malformed malformed) {
    if (token == null || token.isEmpty()) {
      return 0;
    }
    try {
      if (token.startsWith(VERSION) && Character.digit(token.charAt(VERSION.length()), 16) >= 0) {
        return Long.parseUnsignedLong(token, VERSION.length(), token.length(), 16);
      }
    } catch (NumberFormatException | IndexOutOfBoundsException e) {
      // malformed, below
    }
    if (malformed == Malformed.IGNORE) {
      return 0;
    }
    throw Settings.refused("read-your-writes token", "'" + shown(token) + "'", "like 1-16B374D848");
  }

  /** Of somebody else's making: not too much of it goes into a message. */
  private static String shown(String token) {
    String printable = token.replaceAll("[^\\x20-\\x7e]", "?");
    return printable.length() <= 40 ? printable : printable.substring(0, 40) + "…";
  }

  /** For what is no statement of the pipeline's. */
  static Context without(Context context) {
    return context.delete(KEY);
  }

  private static Context put(Context context, long lsn) {
    Scope outer = of(context);
    if (outer == null) {
      return context.put(KEY, new Scope(lsn));
    }
    outer.moved(lsn);
    return context;
  }

  private static <T> Mono<T> scoped(Mono<T> source, long lsn) {
    return source.contextWrite(context -> put(context, lsn));
  }

  private static <T> Flux<T> scoped(Flux<T> source, long lsn) {
    return source.contextWrite(context -> put(context, lsn));
  }

  /**
   * What a pipeline wrote. A write is open until its position is known, or that it wrote nothing.
   */
  static final class Scope {
    private final AtomicLong position;
    private final AtomicInteger unsettled = new AtomicInteger();

    private Scope(long lsn) {
      this.position = new AtomicLong(lsn);
    }

    /** A write is about to be done. One that is never settled keeps the reads on the writer. */
    void writing() {
      unsettled.incrementAndGet();
    }

    /** It is done: the fence moves up to there, never back. */
    void settled(long lsn) {
      moved(lsn);
      unsettled.decrementAndGet();
    }

    private void moved(long lsn) {
      position.accumulateAndGet(lsn, ReadYourWrites::later);
    }
  }
}
