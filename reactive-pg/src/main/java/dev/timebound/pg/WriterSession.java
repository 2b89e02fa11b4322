package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.util.context.ContextView;

/**
 * A connection of the writer, obtained when it is first used; for everything that may write.
 *
 * <p>It is over when it was closed, when it was rolled back in mid-BEGIN or in mid-statement, or
 * when a deadline passed: then the connection is on its way back, and no later call reaches it.
 * Where it ends at rest the connection goes back as it is. Else what runs has a short time to end
 * by itself, is cancelled on the server then, and the connection is closed in place of going back.
 * (PG-16, PG-19)
 */
final class WriterSession {
  private static final String ENDED = "the transaction has ended: roll it back";

  private final Router router;
  private final Runnable counted;
  private final Sinks.One<Connection> connection = Sinks.one();
  private final AtomicBoolean asked = new AtomicBoolean();

  // guarded by this
  private @Nullable Connection obtained;
  private boolean over;

  /** Of the transaction under way; a statement outside of one has its caller's only. */
  private volatile Deadline deadline = Deadline.none();

  /** Begun, or about to be; what statements do by their text the driver knows. */
  private volatile boolean inTransaction;

  /** The connection once its BEGIN was answered; null outside of a transaction. */
  private volatile @Nullable Mono<Connection> begun;

  /** Its BEGIN was sent. */
  private volatile boolean sent;

  /** Something other than statements may be under way. */
  private volatile boolean unsure;

  private final Running running = new Running();

  /** Wants to know of what plain statements wrote, and has been told of the first one. */
  private volatile ReadYourWrites.@Nullable Scope told;

  /**
   * @param counted told when it has its connection
   */
  WriterSession(Router router, Runnable counted) {
    this.router = router;
    this.counted = counted;
  }

  boolean inTransaction() {
    Connection c = open();
    return inTransaction || c != null && !c.isAutoCommit();
  }

  synchronized boolean isOver() {
    return over;
  }

  private synchronized @Nullable Connection open() {
    return over ? null : obtained;
  }

  IsolationLevel isolationLevel() {
    Connection c = open();
    return c == null ? IsolationLevel.READ_COMMITTED : c.getTransactionIsolationLevel();
  }

  private Mono<Connection> connection() {
    return Mono.deferContextual(
        context -> {
          if (isOver()) {
            return Mono.error(new IllegalStateException(ENDED));
          }
          if (asked.compareAndSet(false, true)) {
            // not to be cancelled: a pool may lose a connection that comes in that moment, and
            // r2dbc-pool does; one that comes too late goes back at once
            Mono.defer(() -> Mono.<Connection>from(router.writer().factory().create()))
                .contextWrite(context)
                .subscribe(this::obtained, this::unobtainable);
          }
          return connection.asMono();
        });
  }

  private void obtained(Connection c) {
    boolean late;
    synchronized (this) {
      late = over;
      if (!late) {
        obtained = c;
      }
    }
    if (late) {
      Mono.from(c.close()).subscribe(null, e -> {});
    } else {
      counted.run();
      connection.tryEmitValue(c);
    }
  }

  private void unobtainable(Throwable e) {
    connection.tryEmitError(e);
    take();
  }

  private @Nullable Connection take() {
    Connection c;
    synchronized (this) {
      c = obtained;
      obtained = null;
      over = true;
    }
    if (c == null) {
      connection.tryEmitError(new IllegalStateException("the connection was given back"));
    }
    return c;
  }

  // --- transactions

  /**
   * Completes at once: its BEGIN goes out ahead of the first statement, whose error one that fails
   * becomes. So a framework whose caller leaves between a begin and what it would do with it, and
   * that then forgets both, leaves nothing behind. (PG-16)
   */
  Mono<Void> begin(@Nullable TransactionDefinition definition, Deadline bound) {
    return Mono.fromRunnable(
        () -> {
          deadline = bound;
          inTransaction = true;
          begun = connection().flatMap(c -> begun(c, definition)).cache();
        });
  }

  /** The role is looked at in the round trip of BEGIN. (PG-14, PG-14a) */
  private Mono<Connection> begun(Connection c, @Nullable TransactionDefinition definition) {
    sent = true;
    Runnable done = running.begun();
    if (open() != c) {
      // given back meanwhile; who does so from here on sees that something runs
      done.run();
      return Mono.error(new IllegalStateException(ENDED));
    }
    return Mono.when(
            definition == null ? c.beginTransaction() : c.beginTransaction(definition),
            Router.writerRole(c, null))
        .doOnTerminate(done)
        .thenReturn(c)
        .onErrorResume(
            e ->
                e instanceof WriterRoleException || SqlStates.isConnection(e)
                    ? Mono.error(e)
                    : Router.writerFailed(c, e))
        .doOnError(e -> end());
  }

  /** The connection in the state that the caller believes it in. */
  private Mono<Connection> current() {
    return Mono.defer(
        () -> {
          Mono<Connection> transaction = begun;
          return (transaction == null ? connection() : transaction)
              .flatMap(
                  c -> open() == c ? Mono.just(c) : Mono.error(new IllegalStateException(ENDED)));
        });
  }

  /**
   * Commits; under {@link ReadYourWrites#scope} it notes how far the log must be replayed. (PG-21)
   */
  Mono<Void> commit() {
    return Mono.deferContextual(
        context -> {
          if (isUnsent()) {
            ended();
          }
          if (!inTransaction()) {
            return Mono.empty();
          }
          ReadYourWrites.Scope scope = ReadYourWrites.of(context);
          if (scope != null) {
            scope.writing();
          }
          return bounded(current().flatMap(c -> commit(c).thenReturn(c)))
              .doOnError(e -> notCommitted(scope, e))
              .flatMap(c -> noted(c, scope));
        });
  }

  /** Nothing was done in it: there is no transaction. */
  private boolean isUnsent() {
    return begun != null && !sent;
  }

  private Mono<Void> commit(Connection c) {
    unsure = true;
    return Mono.from(c.commitTransaction())
        .doOnTerminate(this::ended)
        .doOnSuccess(
            done -> {
              unsure = false;
              running.forget();
            });
  }

  /** Where the server said so nothing was written; else it may have been. */
  private static void notCommitted(ReadYourWrites.@Nullable Scope scope, Throwable e) {
    if (scope != null && e instanceof R2dbcException && !SqlStates.isConnection(e)) {
      scope.settled(0);
    }
  }

  /** Where it cannot be learned the scope's reads stay on the writer; the commit stands. */
  private Mono<Void> noted(Connection c, ReadYourWrites.@Nullable Scope scope) {
    return router.settle(c, scope).doOnError(e -> unsure = true).onErrorComplete();
  }

  /** Always succeeds: where it cannot be done the connection goes, and the server does it. */
  Mono<Void> rollback() {
    return Mono.defer(
        () -> {
          Connection c = open();
          if (isUnsent() && (c != null || !asked.get())) {
            ended();
            return Mono.empty();
          }
          if (c == null || running.any()) {
            end();
            ended();
            return Mono.empty();
          }
          unsure = true;
          // not the driver's own, which does nothing where BEGIN has not been answered yet
          return Proof.rollback(c)
              .timeout(router.settings().releaseTimeout(), router.settings().scheduler())
              .doOnSuccess(done -> unsure = false)
              .onErrorResume(
                  e -> {
                    end();
                    return Mono.empty();
                  })
              // ahead of the signal: who hears it asks whether it is in a transaction
              .doOnTerminate(this::ended)
              .doOnCancel(this::ended);
        });
  }

  Mono<Void> createSavepoint(String name) {
    return on(
        c -> {
          inTransaction = true; // the driver begins one where there is none
          return c.createSavepoint(name);
        });
  }

  // --- statements

  Flux<Result> execute(Execution what) {
    return Flux.deferContextual(
        context ->
            this.<Result>bounded(Flux.from(current().flatMapMany(c -> results(c, what, context)))));
  }

  private Flux<Result> results(Connection c, Execution what, ContextView context) {
    boolean plain = !inTransaction();
    if (plain && told == null) {
      ReadYourWrites.Scope scope = ReadYourWrites.of(context);
      if (scope != null) {
        scope.writing();
        told = scope;
      }
    }
    return running
        .watched(
            Drained.results(what, c),
            what,
            (result, done) ->
                new BoundedResult(DrainedResult.of(result, what), rows(c, plain, done)))
        .contextWrite(Quiet::in);
  }

  private BoundedResult.Bound rows(Connection c, boolean plain, @Nullable Runnable done) {
    return new BoundedResult.Bound() {
      @Override
      public <T> Flux<T> apply(Publisher<T> rows) {
        Flux<T> told = Flux.from(rows).contextWrite(Quiet::in);
        if (plain) {
          // within a transaction its BEGIN would have found out
          told = told.onErrorResume(SqlStates::isReadOnly, e -> Router.writerFailed(c, e));
        }
        if (done != null) {
          told = told.doOnTerminate(done);
        }
        return bounded(told);
      }
    };
  }

  Mono<Void> on(Function<Connection, Publisher<Void>> call) {
    return bounded(current().flatMap(c -> Mono.from(call.apply(c))));
  }

  Mono<Boolean> validate(ValidationDepth depth) {
    return current().flatMap(c -> Mono.from(c.validate(depth)));
  }

  /** Within the lesser of the transaction's deadline and the caller's. (PG-13) */
  private <T> Flux<T> bounded(Flux<T> work) {
    return Flux.from(Deadlines.<T>of(deadline, "pg.write").apply(work))
        .doOnError(DeadlineExceededException.class, e -> passed());
  }

  private <T> Mono<T> bounded(Mono<T> work) {
    return Mono.from(Deadlines.<T>of(deadline, "pg.write").apply(work))
        .doOnError(DeadlineExceededException.class, e -> passed());
  }

  /** A narrower bound, of one statement within a transaction, does not end the transaction. */
  private void passed() {
    if (!inTransaction || deadline.isExpired()) {
      end();
    }
  }

  private void ended() {
    inTransaction = false;
    begun = null;
    sent = false;
    deadline = Deadline.none();
  }

  /** Whatever is under way is ended, detached; the connection goes back, or is closed. */
  private void end() {
    Connection c = take();
    if (c != null) {
      end(c);
    }
  }

  private void end(Connection c) {
    ReadYourWrites.Scope scope = told;
    boolean transaction = inTransaction || unsure;
    new WriterLease(c, () -> {}, router.settings())
        .cancelled(
            // outside of a transaction a ROLLBACK would be a warning in the server's log
            transaction ? "ROLLBACK" : "SELECT 1",
            at -> transaction ? Mono.empty() : router.settle(at, scope));
  }

  /** Completes at once where something is under way, whose end is not waited for. */
  Mono<Void> close() {
    return Mono.defer(
        () -> {
          Connection c = take();
          if (c == null) {
            return Mono.empty();
          }
          boolean atRest = !inTransaction && !unsure && !running.any() && c.isAutoCommit();
          if (!atRest) {
            end(c);
            return Mono.empty();
          }
          // a caller that leaves now does not keep it from going back
          return Mono.fromFuture(back(c).toFuture(), true);
        });
  }

  private Mono<Void> back(Connection c) {
    return noted(c, told)
        .then(
            Mono.defer(
                () -> {
                  if (unsure) {
                    end(c);
                    return Mono.empty();
                  }
                  return Mono.from(c.close());
                }));
  }
}
