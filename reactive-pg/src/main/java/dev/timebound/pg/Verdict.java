package dev.timebound.pg;

import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * How a proof went, for a statement that is sent behind it and whose rows are not held back: they
 * come after the verdict by the order of the connection, and are let through one by one. (PG-10)
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

  /** Whether the server said so, in place of saying nothing. */
  static boolean answered(Throwable e) {
    Throwable cause = e instanceof UnprovedException unproved ? unproved.getCause() : e;
    return !(cause instanceof TimeoutException) && !SqlStates.isConnection(cause);
  }
}
