package dev.timebound.cas;

import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.util.context.Context;

/**
 * The token that calls carry: fetched once for all of them, kept until a server refuses it, and
 * then fetched once again, however many calls were refused.
 */
final class Tokens {
  /** A source that hangs must not hold up every call to come. */
  private static final Duration LONGEST_FETCH = Duration.ofSeconds(30);

  private final Mono<String> source;
  private final AtomicReference<@Nullable Fetch> current = new AtomicReference<>();

  Tokens(Mono<String> source, Scheduler timers) {
    this.source =
        source
            .switchIfEmpty(Mono.error(() -> new IllegalStateException("the source was empty")))
            .timeout(LONGEST_FETCH, timers)
            .onErrorMap(
                e ->
                    Status.UNAUTHENTICATED
                        .withDescription("no token: " + e.getMessage())
                        .withCause(e)
                        .asRuntimeException())
            // It is nobody's in particular: no caller's deadline bounds it.
            .contextWrite(caller -> Context.empty());
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
          return fetch == null ? get() : fetch.token;
        });
  }

  /** One token, and the fetch that it came from. */
  static final class Token {
    final String value;
    private final Fetch fetch;

    private Token(String value, Fetch fetch) {
      this.value = value;
      this.fetch = fetch;
    }

    /** A server refused it: the next call fetches another, unless one has done so already. */
    void refused() {
      fetch.forget();
    }
  }

  private final class Fetch {
    private final Mono<Token> token =
        source.map(value -> new Token(value, this)).doOnError(e -> forget()).cache();

    private void forget() {
      current.compareAndSet(this, null);
    }
  }
}
