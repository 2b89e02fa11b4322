package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/** A connection of the writer, obtained when it is first used; for everything that may write. */
final class WriterSession {
  private final Router router;
  private final Mono<Connection> connection;
  private volatile @Nullable Connection obtained;
  private volatile boolean inTransaction;
  private volatile boolean wrote;
  private boolean closed; // guarded by this

  WriterSession(Router router) {
    this.router = router;
    this.connection =
        Mono.defer(() -> Mono.<Connection>from(router.writer().factory().create()))
            .doOnNext(this::obtained)
            .cache();
  }

  boolean inTransaction() {
    return inTransaction;
  }

  IsolationLevel isolationLevel() {
    Connection c = obtained;
    return c == null ? IsolationLevel.READ_COMMITTED : c.getTransactionIsolationLevel();
  }

  /** The role is looked at in the round trip of BEGIN. (PG-14, PG-14a) */
  Mono<Void> begin(@Nullable TransactionDefinition definition) {
    return connection.flatMap(
        c -> {
          inTransaction = true;
          return Mono.whenDelayError(
                  definition == null ? c.beginTransaction() : c.beginTransaction(definition),
                  router.writerRole(c))
              .onErrorResume(e -> roleOr(c, e));
        });
  }

  /** A begin that failed on a standby failed for that. */
  private Mono<Void> roleOr(Connection c, Throwable e) {
    return SqlStates.isConnection(e)
        ? Mono.error(e)
        : Proof.rollback(c)
            .then(router.writerRole(c))
            .onErrorMap(other -> !(other instanceof WriterRoleException), other -> e)
            .then(Mono.error(e));
  }

  Mono<Void> commit() {
    return Mono.deferContextual(
        context ->
            on(Connection::commitTransaction)
                .doOnSuccess(done -> inTransaction = false)
                .then(Mono.defer(() -> noted(context))));
  }

  /** Not the driver's own, which does nothing where BEGIN has not been answered yet. */
  Mono<Void> rollback() {
    return on(Proof::rollback)
        .timeout(router.settings().releaseTimeout(), router.settings().scheduler())
        .doFinally(end -> inTransaction = false);
  }

  /** Notes how far the log was written, where a scope wants it known. (PG-21) */
  private Mono<Void> noted(ContextView context) {
    Connection c = obtained;
    if (c == null || !ReadYourWrites.isTracked(context)) {
      return Mono.empty();
    }
    wrote = false;
    return Router.position(c).doOnNext(lsn -> ReadYourWrites.wrote(context, lsn)).then();
  }

  Flux<Result> execute(Execution what) {
    return connection.flatMapMany(
        c -> {
          wrote = true;
          return what.on(c);
        });
  }

  Mono<Void> on(Function<Connection, Publisher<Void>> call) {
    return connection.flatMap(c -> Mono.from(call.apply(c)));
  }

  Mono<Void> autoCommit(boolean on) {
    return on(c -> c.setAutoCommit(on)).doOnSuccess(done -> inTransaction = !on);
  }

  Mono<Boolean> validate(ValidationDepth depth) {
    return connection.flatMap(c -> Mono.from(c.validate(depth)));
  }

  private void obtained(Connection c) {
    synchronized (this) {
      if (!closed) {
        obtained = c;
        router.routed(RouteTarget.WRITER, RouteReason.READ_WRITE_REQUESTED);
        return;
      }
    }
    Mono.from(c.close()).subscribe();
  }

  Mono<Void> close() {
    Connection c;
    synchronized (this) {
      closed = true;
      c = obtained;
    }
    if (c == null) {
      return Mono.empty();
    }
    return Mono.deferContextual(
        context -> {
          Mono<Void> note =
              wrote && !inTransaction
                  ? noted(context).onErrorResume(e -> Mono.empty())
                  : Mono.empty();
          return note.then(Mono.from(c.close()));
        });
  }
}
