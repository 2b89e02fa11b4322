package dev.timebound.pg;

import io.r2dbc.spi.Result;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * How a proof went, and how what is sent behind it waits for that: results are {@link #held} back,
 * but those of a statement that the driver sends when they are consumed. Their rows come after the
 * verdict by the order of the connection, and are let through one by one. (PG-10)
 */
final class Verdict {
  private final PgSettings settings;
  private final Sinks.Empty<Void> refusal = Sinks.empty();
  private volatile boolean proved;
  private volatile @Nullable UnprovedException refused;

  private Verdict(PgSettings settings) {
    this.settings = settings;
  }

  /** Hears of it from now on, whether or not anyone else does. */
  static Verdict of(Mono<Boolean> proof, PgSettings settings) {
    Verdict verdict = new Verdict(settings);
    proof.subscribe(standby -> verdict.proved = true, verdict::refused);
    return verdict;
  }

  private void refused(Throwable e) {
    UnprovedException unproved =
        e instanceof UnprovedException already ? already : new UnprovedException(e);
    refused = unproved;
    refusal.tryEmitError(unproved);
  }

  /**
   * For each row, before anyone sees it: an UnprovedException where it is one of a refused read.
   * Where BEGIN itself was refused the statement behind it has run all the same.
   */
  void letThrough() {
    if (!proved) {
      UnprovedException e = refused;
      throw e != null
          ? e
          : new UnprovedException(new IllegalStateException("a row came before the verdict"));
    }
  }

  /** The statement failed: the proof's own error goes before what it made of the statement. */
  Throwable cause(Throwable e) {
    UnprovedException unproved = refused;
    return unproved == null ? e : unproved;
  }

  /**
   * Fails once the read is refused. Where the server has refused it, it has refused the statement
   * too: that answer comes at once and goes first, so that the connection is at rest.
   */
  <T> Mono<T> refusal() {
    return refusal
        .asMono()
        .<T>then(Mono.never())
        .onErrorResume(
            e ->
                answered(e)
                    ? Mono.delay(settings.proofTimeout(), settings.scheduler()).then(Mono.error(e))
                    : Mono.error(e));
  }

  /**
   * Sent at once; what comes waits for the verdict, whose error goes before the statement's. Where
   * the server has refused, it has refused the statement too: that answer is taken in first, so
   * that the connection is at rest.
   */
  static Flux<Result> held(
      Publisher<? extends Result> results, Mono<Boolean> verdict, PgSettings settings) {
    Flux<Result> waiting =
        Flux.<Result>from(results)
            .onErrorResume(e -> verdict.then(Mono.error(e)))
            .concatMap(
                result ->
                    verdict
                        .thenReturn(result)
                        .onErrorResume(
                            e ->
                                Flux.from(result.getRowsUpdated())
                                    .onErrorComplete()
                                    .then(Mono.error(e))),
                1);
    // from a frozen server no result comes: the verdict ends it by itself
    Mono<Result> unanswered =
        verdict
            .onErrorResume(
                e ->
                    answered(e)
                        ? Mono.delay(settings.proofTimeout(), settings.scheduler())
                            .then(Mono.error(e))
                        : Mono.error(e))
            .then(Mono.empty());
    return Flux.merge(unanswered, waiting);
  }

  /** Whether the server said so, in place of saying nothing. */
  static boolean answered(Throwable e) {
    Throwable cause = e instanceof UnprovedException unproved ? unproved.getCause() : e;
    return !(cause instanceof TimeoutException) && !SqlStates.isConnection(cause);
  }
}
