package dev.timebound.cas;

import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.util.context.Context;

/**
 * The token that calls carry: fetched once for all of them, kept until a server refuses it, and
 * then fetched once again, however many calls were refused. A server that refuses whatever it is
 * given has it fetched once a second at most.
 */
final class Tokens {
  /** A source that hangs must not hold up every call to come. */
  private static final Duration LONGEST_FETCH = Duration.ofSeconds(30);

  private static final long BETWEEN_REFUSALS = TimeUnit.SECONDS.toNanos(1);

  private final Mono<String> source;
  private final Scheduler timers;
  private final AtomicReference<@Nullable Fetch> current = new AtomicReference<>();

  /** When a refused token was let go last. */
  private final AtomicReference<@Nullable Long> refusedAt = new AtomicReference<>();

  private final Sinks.Empty<Token> closed = Sinks.empty();

  Tokens(Mono<String> source, Scheduler timers) {
    this.timers = timers;
    this.source =
        guarded(source)
            .switchIfEmpty(Mono.error(() -> new IllegalStateException("the source was empty")))
            .doOnNext(Tokens::requireHeaderValue)
            .timeout(LONGEST_FETCH, timers)
            .onErrorMap(
                e ->
                    Status.UNAUTHENTICATED
                        .withDescription("no token: " + words(e))
                        .withCause(e)
                        .asRuntimeException())
            // It is nobody's in particular: no caller's deadline bounds it.
            .contextWrite(caller -> Context.empty());
  }

  /**
   * A source that dies by an Error has ended: Reactor lets those fly past its signals, and calls
   * would wait for a token that never comes.
   */
  private static Mono<String> guarded(Mono<String> source) {
    return Mono.create(
        sink -> {
          try {
            sink.onDispose(
                source.subscribe(
                    sink::success, sink::error, sink::success, Context.of(sink.contextView())));
          } catch (Throwable fatal) {
            sink.error(new IllegalStateException(fatal.toString(), fatal));
          }
        });
  }

  private static String words(Throwable failure) {
    String message = failure instanceof Error ? null : failure.getMessage();
    return message == null ? failure.toString() : message;
  }

  /** One that no header can carry gRPC would leave out, and log. What it is, is not told. */
  private static void requireHeaderValue(String token) {
    if (token.isEmpty()) {
      throw new IllegalStateException("the source's is empty");
    }
    for (int i = 0; i < token.length(); i++) {
      if (token.charAt(i) <= ' ' || token.charAt(i) > '~') {
        throw new IllegalStateException(
            "the source's has a blank, a line end or another character that a header cannot carry,"
                + " at index "
                + i
                + " of "
                + token.length());
      }
    }
  }

  /** The token there is; null where it must be waited for. */
  @Nullable Token present() {
    Fetch fetch = current.get();
    return fetch == null ? null : fetch.fetched;
  }

  /** The present token, or the one being fetched. */
  Mono<Token> get() {
    return Mono.defer(
        () -> {
          Fetch fetch = current.get();
          if (fetch == null) {
            Fetch made = new Fetch();
            fetch = current.compareAndSet(null, made) ? made : current.get();
          }
          return fetch == null ? get() : fetch.token();
        });
  }

  /** Calls that wait for a token end with UNAVAILABLE, and so do those to come. */
  void close() {
    closed.tryEmitError(
        Status.UNAVAILABLE.withDescription("the ring is closed").asRuntimeException());
  }

  private boolean mayRefuse() {
    long now = timers.now(TimeUnit.NANOSECONDS);
    Long last = refusedAt.get();
    return (last == null || now - last >= BETWEEN_REFUSALS) && refusedAt.compareAndSet(last, now);
  }

  /** One token, and the fetch that it came from. */
  static final class Token {
    final String value;
    private final Fetch fetch;

    private Token(String value, Fetch fetch) {
      this.value = value;
      this.fetch = fetch;
    }

    /**
     * A server refused it: the next call fetches another, unless one has done so already.
     *
     * @return whether there may be another one now
     */
    boolean refused() {
      return fetch.refused();
    }
  }

  private final class Fetch {
    private volatile @Nullable Token fetched;

    private final Mono<Token> fetching =
        source
            .map(value -> new Token(value, this))
            .doOnNext(token -> fetched = token)
            .doOnError(e -> forget())
            .cache();

    Mono<Token> token() {
      Token present = fetched;
      return present == null
          ? Mono.firstWithSignal(fetching, closed.asMono()).onErrorMap(ShardStatuses::own)
          : Mono.just(present);
    }

    private boolean refused() {
      if (current.get() != this) {
        return true;
      }
      if (!mayRefuse()) {
        return false;
      }
      forget();
      return true;
    }

    private void forget() {
      current.compareAndSet(this, null);
    }
  }
}
