package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionMetadata;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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

  /** The read-only transaction under way. */
  private volatile @Nullable ReadSession session;

  /** Reads without a transaction, each in a session of its own, until their results have ended. */
  private final Set<ReadSession> plain = ConcurrentHashMap.newKeySet();

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
    return Mono.defer(() -> beginning().begin(null, Deadline.none()));
  }

  @Override
  public Publisher<Void> beginTransaction(TransactionDefinition definition) {
    Settings.required("definition", definition);
    return Mono.deferContextual(
        context -> {
          if (readOnly(definition)) {
            beginning();
            session = session(context, ReadOnlyRouting.options(context), definition);
            return Mono.empty();
          }
          return beginning().begin(definition, bound(Deadline.none(), definition));
        });
  }

  /** A second one would be none, and its caller believes it is. */
  private WriterSession beginning() {
    if (given) {
      throw new IllegalStateException("beginTransaction: a read is in its transaction already");
    }
    WriterSession w = write();
    if (!isAutoCommit()) {
      throw new IllegalStateException(
          "beginTransaction: a transaction is under way (expected: none)");
    }
    return w;
  }

  /** A standby has no SERIALIZABLE: such a transaction is the writer's, read-only or not. */
  private static boolean readOnly(TransactionDefinition definition) {
    return Boolean.TRUE.equals(definition.getAttribute(TransactionDefinition.READ_ONLY))
        && !IsolationLevel.SERIALIZABLE.equals(
            definition.getAttribute(TransactionDefinition.ISOLATION_LEVEL));
  }

  /** What Spring makes of {@code @Transactional(timeout = …)}, within the deadline. (PG-13) */
  private Deadline bound(Deadline deadline, TransactionDefinition definition) {
    Duration timeout = definition.getAttribute(TransactionDefinition.LOCK_WAIT_TIMEOUT);
    if (timeout == null || timeout.isZero() || timeout.isNegative()) {
      return deadline;
    }
    return deadline.isNone()
        ? Deadline.after(timeout, router.settings().scheduler())
        : deadline.within(timeout);
  }

  private ReadSession session(
      ContextView context,
      @Nullable ReadOptions options,
      @Nullable TransactionDefinition definition) {
    Deadline deadline = router.deadline(context);
    ReadOptions asked = options == null ? ReadOptions.defaults() : options;
    return new ReadSession(
        router,
        asked,
        asked.fence().and(ReadYourWrites.fence(context)),
        definition == null ? deadline : bound(deadline, definition),
        null);
  }

  @Override
  public Publisher<Void> commitTransaction() {
    return Mono.defer(
        () -> {
          WriterSession w = open();
          // a read-only transaction has nothing to commit: its caller does not wait for its end
          return endSession(true) || w == null ? Mono.empty() : w.commit();
        });
  }

  @Override
  public Publisher<Void> rollbackTransaction() {
    return Mono.defer(
        () -> {
          // after close() too, which has rolled back: a framework that was cancelled may come late
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
          plain.forEach(read -> read.end(false));
          WriterSession w = writer;
          writer = null;
          return w == null ? Mono.empty() : w.close();
        });
  }

  // --- statements

  @Override
  public Statement createStatement(String sql) {
    Settings.required("sql", sql);
    return new RecordedStatement(sql, what -> execute(what, sql));
  }

  @Override
  public Batch createBatch() {
    return new RecordedBatch(this::execute);
  }

  private Flux<Result> execute(Execution what, String sql) {
    // what Spring's enforceReadOnly sends first: the transaction is read-only anyway, and the
    // statement would take the place behind the proof
    return Flux.defer(
        () ->
            session != null && SET_READ_ONLY.matcher(sql).matches() ? Flux.empty() : execute(what));
  }

  private Flux<Result> execute(Execution what) {
    return Flux.deferContextual(
        context -> {
          WriterSession w = open();
          ReadSession s = session;
          if (s != null) {
            return given ? s.execute(what) : new BoundedRead(s, null).execute(what);
          }
          ReadOptions routed = ReadOnlyRouting.options(context);
          if (routed == null || w != null && w.inTransaction()) {
            return write().execute(what);
          }
          ReadSession read = session(context, routed, null);
          plain.add(read);
          return new BoundedRead(read, () -> plain.remove(read)).execute(what);
        });
  }

  /** Null where it has none yet. */
  private @Nullable WriterSession open() {
    if (closed) {
      throw new IllegalStateException("connection: closed (expected: open)");
    }
    return writer;
  }

  /** One that is over is replaced, but for one whose transaction its caller has yet to end. */
  private WriterSession write() {
    WriterSession w = open();
    if (w == null || w.isOver() && !w.inTransaction()) {
      w =
          new WriterSession(
              router, () -> router.routed(RouteTarget.WRITER, RouteReason.READ_WRITE_REQUESTED));
      writer = w;
    }
    return w;
  }

  // --- the rest of the transaction's

  @Override
  public Publisher<Void> createSavepoint(String name) {
    return savepoint("SAVEPOINT ", name, w -> w.createSavepoint(name));
  }

  @Override
  public Publisher<Void> releaseSavepoint(String name) {
    return inTransaction(
        savepoint("RELEASE SAVEPOINT ", name, w -> w.on(c -> c.releaseSavepoint(name))));
  }

  @Override
  public Publisher<Void> rollbackTransactionToSavepoint(String name) {
    return inTransaction(
        savepoint(
            "ROLLBACK TO SAVEPOINT ",
            name,
            w -> w.on(c -> c.rollbackTransactionToSavepoint(name))));
  }

  /** Nothing, as the driver does, where there is none: a framework cleans up more than once. */
  private Mono<Void> inTransaction(Mono<Void> call) {
    return Mono.defer(
        () -> {
          WriterSession w = writer;
          boolean over = closed || isAutoCommit() || session == null && w != null && w.isOver();
          return over ? Mono.empty() : call;
        });
  }

  /** As a statement of the session's: the driver's own calls look at a status not there yet. */
  private Mono<Void> savepoint(
      String verb, String name, Function<WriterSession, Mono<Void>> onWriter) {
    if (!SAVEPOINT.matcher(Settings.required("savepoint", name)).matches()) {
      throw Settings.refused("savepoint", "'" + name + "'", "an identifier");
    }
    return Mono.defer(
        () ->
            session == null
                ? onWriter.apply(write())
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
        () -> {
          open();
          if (autoCommit == isAutoCommit()) {
            return Mono.empty();
          }
          return Mono.from(autoCommit ? commitTransaction() : beginTransaction());
        });
  }

  @Override
  public IsolationLevel getTransactionIsolationLevel() {
    WriterSession w = writer;
    if (session != null) {
      return IsolationLevel.REPEATABLE_READ;
    }
    return w == null ? IsolationLevel.READ_COMMITTED : w.isolationLevel();
  }

  /** A read-only transaction has REPEATABLE READ, which is all that the weaker ones ask for. */
  @Override
  public Publisher<Void> setTransactionIsolationLevel(IsolationLevel level) {
    Settings.required("isolationLevel", level);
    return Mono.defer(
        () -> {
          if (session == null) {
            return level.equals(getTransactionIsolationLevel())
                ? Mono.empty()
                : write().on(c -> c.setTransactionIsolationLevel(level));
          }
          return IsolationLevel.SERIALIZABLE.equals(level)
              ? Mono.error(
                  Settings.refused("isolationLevel", level.asSql(), "at most REPEATABLE READ"))
              : Mono.empty();
        });
  }

  /** Of a read-only transaction nothing is locked. */
  @Override
  public Publisher<Void> setLockWaitTimeout(Duration timeout) {
    Settings.required("timeout", timeout);
    return Mono.defer(
        () -> session != null ? Mono.empty() : write().on(c -> c.setLockWaitTimeout(timeout)));
  }

  /** Of a read-only transaction: its deadline rules. (PG-13) */
  @Override
  public Publisher<Void> setStatementTimeout(Duration timeout) {
    Settings.required("timeout", timeout);
    return Mono.defer(
        () -> session != null ? Mono.empty() : write().on(c -> c.setStatementTimeout(timeout)));
  }

  @Override
  public Publisher<Boolean> validate(ValidationDepth depth) {
    Settings.required("depth", depth);
    return Mono.defer(
        () -> {
          WriterSession w = writer;
          return closed || w == null || w.isOver() ? Mono.just(!closed) : w.validate(depth);
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
