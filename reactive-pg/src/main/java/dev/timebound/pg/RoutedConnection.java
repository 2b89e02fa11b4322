package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionMetadata;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * A connection that is none until it is used: a transaction declared read-only becomes a {@link
 * ReadSession}, everything else a connection of the writer. As with every connection, calls come
 * one after the other, from whatever thread.
 */
final class RoutedConnection implements Connection {
  private static final Pattern SAVEPOINT = Pattern.compile("[A-Za-z_][A-Za-z0-9_$]*");
  private static final Pattern SET_READ_ONLY =
      Pattern.compile("\\s*SET\\s+TRANSACTION\\s+READ\\s+ONLY\\s*;?\\s*", Pattern.CASE_INSENSITIVE);

  private final Router router;

  /** The session is somebody else's to bound and to end. */
  private final boolean given;

  /** The read-only transaction under way, or the one that plain statements run in. */
  private volatile @Nullable ReadSession session;

  private volatile @Nullable WriterSession writer;
  private volatile boolean closed;

  RoutedConnection(Router router) {
    this.router = router;
    this.given = false;
  }

  /** For a read that has its session, and bounds it itself. */
  RoutedConnection(Router router, ReadSession session) {
    this.router = router;
    this.session = session;
    this.given = true;
  }

  // --- transactions

  @Override
  public Publisher<Void> beginTransaction() {
    return Mono.defer(
        () -> {
          if (given) {
            throw inTransaction();
          }
          return write().begin(null);
        });
  }

  @Override
  public Publisher<Void> beginTransaction(TransactionDefinition definition) {
    return Mono.deferContextual(
        context -> {
          if (given) {
            throw inTransaction();
          }
          endSession(true);
          if (!readOnly(definition)) {
            return write().begin(definition);
          }
          session = session(context, ReadOnlyRouting.options(context), definition);
          return Mono.empty();
        });
  }

  private static IllegalStateException inTransaction() {
    return new IllegalStateException("beginTransaction: a read is in its transaction already");
  }

  /** A standby has no SERIALIZABLE: such a transaction is the writer's, read-only or not. */
  private static boolean readOnly(TransactionDefinition definition) {
    return Boolean.TRUE.equals(definition.getAttribute(TransactionDefinition.READ_ONLY))
        && !IsolationLevel.SERIALIZABLE.equals(
            definition.getAttribute(TransactionDefinition.ISOLATION_LEVEL));
  }

  private ReadSession session(
      ContextView context,
      @Nullable ReadOptions options,
      @Nullable TransactionDefinition definition) {
    Duration timeout =
        definition == null
            ? null
            : definition.getAttribute(TransactionDefinition.LOCK_WAIT_TIMEOUT);
    Deadline deadline = router.deadline(context);
    ReadOptions asked = options == null ? ReadOptions.defaults() : options;
    return new ReadSession(
        router,
        asked,
        asked.fence().and(ReadYourWrites.fence(context)),
        timeout == null ? deadline : deadline.within(timeout),
        null);
  }

  @Override
  public Publisher<Void> commitTransaction() {
    return Mono.defer(
        () -> {
          // a read-only transaction has nothing to commit: its caller does not wait for its end
          WriterSession w = writer;
          return endSession(true) || w == null ? Mono.empty() : w.commit();
        });
  }

  @Override
  public Publisher<Void> rollbackTransaction() {
    return Mono.defer(
        () -> {
          WriterSession w = writer;
          return endSession(false) || w == null ? Mono.empty() : w.rollback();
        });
  }

  /** True where there was one. */
  private boolean endSession(boolean completed) {
    ReadSession s = session;
    if (given) {
      return true;
    }
    session = null;
    if (s != null) {
      s.end(completed);
    }
    return s != null;
  }

  @Override
  public Publisher<Void> close() {
    return Mono.defer(
        () -> {
          closed = true;
          endSession(false);
          WriterSession w = writer;
          writer = null;
          return w == null ? Mono.empty() : w.close();
        });
  }

  // --- statements

  @Override
  public Statement createStatement(String sql) {
    return new RecordedStatement(sql, what -> execute(what, sql));
  }

  @Override
  public Batch createBatch() {
    return new RecordedBatch(this::execute);
  }

  private Flux<Result> execute(Execution what, String sql) {
    // what Spring's enforceReadOnly sends first: it is read-only anyway, and must not be the
    // proof's
    // companion
    return Flux.defer(
        () ->
            session != null && SET_READ_ONLY.matcher(sql).matches() ? Flux.empty() : execute(what));
  }

  private Flux<Result> execute(Execution what) {
    return Flux.deferContextual(
        context -> {
          if (closed) {
            return Flux.error(new IllegalStateException("connection: closed (expected: open)"));
          }
          ReadSession s = session;
          WriterSession w = writer;
          ReadOptions routed = ReadOnlyRouting.options(context);
          if (s == null && routed != null && (w == null || !w.inTransaction())) {
            s = session(context, routed, null);
            session = s;
          }
          if (s == null) {
            return write().execute(what);
          }
          return given ? s.execute(what) : bounded(s, s.execute(what));
        });
  }

  /** Nobody else does it: the read has no operator of ours around it. (PG-13) */
  private static Flux<Result> bounded(ReadSession session, Flux<Result> results) {
    Flux<Result> bounded =
        Flux.from(Deadlines.<Result>of(session.deadline(), "pg.read").apply(results));
    return bounded.map(result -> new BoundedResult(result, session));
  }

  private WriterSession write() {
    WriterSession w = writer;
    if (w == null) {
      w = new WriterSession(router);
      writer = w;
    }
    return w;
  }

  // --- the rest of the transaction's

  @Override
  public Publisher<Void> createSavepoint(String name) {
    return savepoint("SAVEPOINT ", name, c -> c.createSavepoint(name));
  }

  @Override
  public Publisher<Void> releaseSavepoint(String name) {
    return savepoint("RELEASE SAVEPOINT ", name, c -> c.releaseSavepoint(name));
  }

  @Override
  public Publisher<Void> rollbackTransactionToSavepoint(String name) {
    return savepoint("ROLLBACK TO SAVEPOINT ", name, c -> c.rollbackTransactionToSavepoint(name));
  }

  /** As a statement of the session's: the driver's own calls look at a status not there yet. */
  private Mono<Void> savepoint(
      String verb, String name, Function<Connection, Publisher<Void>> onWriter) {
    if (!SAVEPOINT.matcher(name).matches()) {
      throw Settings.refused("savepoint", "'" + name + "'", "an identifier");
    }
    return Mono.defer(
        () ->
            session == null
                ? write().on(onWriter)
                : Flux.from(createStatement(verb + name).execute())
                    .concatMap(Result::getRowsUpdated)
                    .then());
  }

  @Override
  public boolean isAutoCommit() {
    WriterSession w = writer;
    return session == null && (w == null || !w.inTransaction());
  }

  @Override
  public Publisher<Void> setAutoCommit(boolean autoCommit) {
    return Mono.defer(
        () -> autoCommit == isAutoCommit() ? Mono.empty() : write().autoCommit(autoCommit));
  }

  @Override
  public IsolationLevel getTransactionIsolationLevel() {
    WriterSession w = writer;
    if (session != null) {
      return IsolationLevel.REPEATABLE_READ;
    }
    return w == null ? IsolationLevel.READ_COMMITTED : w.isolationLevel();
  }

  @Override
  public Publisher<Void> setTransactionIsolationLevel(IsolationLevel level) {
    return Mono.defer(
        () ->
            session != null || level.equals(getTransactionIsolationLevel())
                ? Mono.empty()
                : write().on(c -> c.setTransactionIsolationLevel(level)));
  }

  @Override
  public Publisher<Void> setLockWaitTimeout(Duration timeout) {
    return Mono.defer(
        () -> session != null ? Mono.empty() : write().on(c -> c.setLockWaitTimeout(timeout)));
  }

  /** Of a read-only transaction: its deadline rules. (PG-13) */
  @Override
  public Publisher<Void> setStatementTimeout(Duration timeout) {
    return Mono.defer(
        () -> session != null ? Mono.empty() : write().on(c -> c.setStatementTimeout(timeout)));
  }

  @Override
  public Publisher<Boolean> validate(ValidationDepth depth) {
    return Mono.defer(
        () -> {
          WriterSession w = writer;
          return closed || w == null ? Mono.just(!closed) : w.validate(depth);
        });
  }

  @Override
  public ConnectionMetadata getMetadata() {
    return Metadata.CONNECTION;
  }

  @Override
  public String toString() {
    String bound = session != null ? "reading" : writer != null ? "on the writer" : "unbound";
    return "RoutedConnection(" + (closed ? "closed" : bound) + ")";
  }
}
