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
import java.util.function.BiFunction;
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
  private final Router router;
  private final WriterConnection connection;

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
    this.connection = new WriterConnection(router.writer().factory(), counted);
  }

  boolean inTransaction() {
    Connection c = connection.open();
    return inTransaction || c != null && !c.isAutoCommit();
  }

  boolean isOver() {
    return connection.isOver();
  }

  IsolationLevel isolationLevel() {
    Connection c = connection.open();
    return c == null ? IsolationLevel.READ_COMMITTED : c.getTransactionIsolationLevel();
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
          int turn = connection.turn();
          begun =
              connection
                  .get()
                  .flatMap(c -> connection.sending(turn, () -> begun(c, definition)).next())
                  .cache();
        });
  }

  /** The role is looked at in the round trip of BEGIN. (PG-14, PG-14a) */
  private Mono<Connection> begun(Connection c, @Nullable TransactionDefinition definition) {
    sent = true;
    Runnable done = running.begun();
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

  /** What that sends on the connection in the state that the caller believes it in. */
  private <T> Flux<T> sent(BiFunction<Connection, Integer, Publisher<T>> what) {
    return Flux.defer(
        () -> {
          int turn = connection.turn();
          Mono<Connection> transaction = begun;
          return (transaction == null ? connection.get() : transaction)
              .flatMapMany(c -> connection.sending(turn, () -> what.apply(c, turn)));
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
          return bounded(sent((c, turn) -> commit(c)).then())
              .doOnError(e -> notCommitted(scope, e))
              // the commit stands: who left meanwhile has the scope's reads on the writer
              .then(sent((c, turn) -> noted(c, scope)).then().onErrorComplete());
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
          Connection c = connection.open();
          // from here on no statement of the transaction is sent, nor its BEGIN
          boolean still = connection.nextTurn();
          if (isUnsent() && still && (c != null || !connection.isAsked())) {
            ended();
            return Mono.empty();
          }
          if (c == null || !still || running.any()) {
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
        context -> this.<Result>bounded(this.sent((c, turn) -> results(c, turn, what, context))));
  }

  private Flux<Result> results(Connection c, int turn, Execution what, ContextView context) {
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
                new BoundedResult(
                    DrainedResult.of(result, what),
                    rows(c, plain, done, what.isSentLate() ? turn : null)))
        .contextWrite(Quiet::in);
  }

  /**
   * @param turn of a statement that is sent when its rows are asked for; else null
   */
  private BoundedResult.Bound rows(
      Connection c, boolean plain, @Nullable Runnable done, @Nullable Integer turn) {
    return new BoundedResult.Bound() {
      @Override
      public <T> Flux<T> apply(Publisher<T> rows) {
        Flux<T> told =
            (turn == null ? Flux.from(rows) : connection.sending(turn, () -> rows))
                .contextWrite(Quiet::in);
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
    return bounded(sent((c, turn) -> call.apply(c)).then());
  }

  Mono<Boolean> validate(ValidationDepth depth) {
    return this.<Boolean>sent((c, turn) -> Flux.from(c.validate(depth))).next();
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
    connection.end(
        c -> {
          if (c != null) {
            end(c);
          }
        });
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
          Sinks.Empty<Void> closed = Sinks.empty();
          boolean first =
              // a caller that leaves now does not keep it from going back
              connection.end(
                  c -> back(c).subscribe(null, closed::tryEmitError, closed::tryEmitEmpty));
          return first ? closed.asMono() : Mono.empty();
        });
  }

  private Mono<Void> back(@Nullable Connection c) {
    if (c == null) {
      return Mono.empty();
    }
    if (inTransaction || unsure || running.any() || !c.isAutoCommit()) {
      end(c);
      return Mono.empty();
    }
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
