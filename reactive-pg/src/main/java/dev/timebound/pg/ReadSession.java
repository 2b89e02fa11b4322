package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.health.FailureKind;
import dev.timebound.health.QuarantinedException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * One read-only transaction, from its first statement to its end. The first statement decides where
 * it runs: it is sent right behind the proof, and executed on the writer where no reader serves it,
 * a reader is refused, or goes out before the first row. Later statements run where the first one
 * did.
 *
 * <p>Nothing reaches the caller before the verdict: what the first statement brings is held until
 * then, its errors too. (PG-10)
 */
final class ReadSession {
  private static final String GIVEN_UP =
      "the read's first statement was given up before it had an answer: no other can follow";

  private final Router router;
  private final ReadOptions options;
  private final Fence fence;
  private final Deadline deadline;

  /** Whether rows are collected, whatever the statement's fetch size; null where that tells. */
  private final @Nullable Boolean collected;

  private final AtomicBoolean begun = new AtomicBoolean();
  private final Sinks.Empty<Void> bound = Sinks.empty();

  /** Fails when the reader goes out; heard until the first row has come. (PG-11a) */
  private final Sinks.Empty<Void> quarantine = Sinks.empty();

  private final Holding holding;

  /** The first statement's caller did. */
  private volatile boolean left;

  /** Where later statements run. */
  private volatile @Nullable Connection connection;

  ReadSession(
      Router router,
      ReadOptions options,
      Fence fence,
      Deadline deadline,
      @Nullable Boolean collected) {
    this.router = router;
    this.options = options;
    this.fence = fence;
    this.deadline = deadline;
    this.collected = collected;
    this.holding = new Holding(router, options.isMaintenance());
  }

  Deadline deadline() {
    return deadline;
  }

  /**
   * Executes it, once for each subscription. Of several sets of parameters the first one is sent
   * behind the proof, as it would be alone: the driver would hold all back.
   */
  Flux<Result> execute(Execution what) {
    List<Execution> each = what.each();
    return each.size() == 1 ? whole(what) : Flux.fromIterable(each).concatMap(this::whole, 1);
  }

  /** The same, left in one piece. */
  Flux<Result> whole(Execution what) {
    return Flux.defer(() -> begun.compareAndSet(false, true) ? first(what) : later(what))
        .contextWrite(Quiet::in);
  }

  /** Ends the transaction; what that takes runs detached. Idempotent. */
  void end(boolean completed) {
    if (holding.end(completed)) {
      refuseLater(Holding.ENDED);
    }
  }

  // --- statements

  private Flux<Result> later(Execution what) {
    return bound
        .asMono()
        .thenMany(
            Flux.defer(
                () -> {
                  Connection c = connection;
                  return c == null
                      ? Flux.empty()
                      : holding.sending(() -> watched(Drained.results(what, c), what, false));
                }));
  }

  private Flux<Result> first(Execution what) {
    return Flux.defer(
            () ->
                options.isOnWriter()
                    ? onWriter(what, RouteReason.WRITER_REQUESTED)
                    : onReader(what))
        .onErrorResume(RefusedException.class, e -> onWriter(what, e.reason()))
        .doOnError(this::unbound)
        .doOnCancel(
            () -> {
              left = true;
              // one that is sent late has its answer, or none, when its result is consumed
              if (!what.isSentLate()) {
                givenUp();
              }
            });
  }

  /** No later statement can run. */
  void unbound(Throwable e) {
    bound.tryEmitError(e);
  }

  void givenUp() {
    refuseLater(GIVEN_UP);
  }

  /** Where it is bound nobody waits, and an exception for nobody costs more than the read does. */
  private void refuseLater(String why) {
    if (connection == null) {
      bound.tryEmitError(new IllegalStateException(why));
    }
  }

  private Flux<Result> onReader(Execution what) {
    Checkout c = router.checkout(this::quarantined);
    holding.take(c);
    long began = now();
    return Mono.firstWithSignal(c.acquire(deadline), quarantine.asMono().cast(Lease.class))
        .doOnNext(lease -> charge("pg.acquire", began))
        .flatMapMany(lease -> proved(what, c, lease, options.waitForFence(), proofEnd()));
  }

  /** The first statement behind its proof. Its own errors pass; those of the proof are refusals. */
  private Flux<Result> proved(
      Execution what, Checkout c, Lease lease, Duration mayWait, long proofEnd) {
    return holding.sending(
        () -> {
          if (left) {
            return Flux.empty(); // heard by nobody, nor should it be logged
          }
          lease.began();
          holding.proving(true);
          long began = now();
          Proof proof =
              Proof.onReader(
                  lease.connection(), fence, router.nextNumber(), statementTimeoutMillis(what));
          Mono<Boolean> verdict =
              proof
                  .verdict()
                  .timeout(left(proofEnd), router.settings().scheduler())
                  .doOnNext(
                      standby -> {
                        charge("pg.proof", began);
                        lease.proved();
                        lease.connection().proofs().ran();
                        router.roleSeen(c.reader(), standby);
                        bind(lease.driver(), RouteReason.PROVED);
                      })
                  .onErrorMap(UnprovedException::new)
                  .cache();
          Function<Throwable, Flux<Result>> unproved =
              e -> unproved(e, what, c, lease, mayWait, proofEnd);
          if (what.isSentLate()) {
            Verdict judged = Verdict.of(verdict, router.settings());
            return watched(
                Flux.<Result>defer(() -> Flux.from(what.on(lease.driver())))
                    .onErrorResume(e -> verdict.onErrorComplete().then(Mono.error(e)))
                    .map(result -> new ProvedResult(result, judged, unproved)),
                what,
                true);
          }
          AtomicBoolean came = new AtomicBoolean();
          Flux<Result> results =
              watched(
                      Verdict.held(
                          Drained.results(what, lease.driver()), verdict, router.settings()),
                      what,
                      true)
                  .doOnNext(result -> came.set(true))
                  .onErrorResume(
                      e ->
                          came.get()
                              ? endOf(e, what)
                              : Flux.error(RefusedException.inPlaceOf(e, what)));
          return Flux.firstWithSignal(results, this.<Result>quarantineSignal())
              .onErrorResume(UnprovedException.class, e -> unproved.apply(e.getCause()));
        });
  }

  /** The one result that has come ends with the same error, and may yet be had elsewhere. */
  private static Flux<Result> endOf(Throwable e, Execution what) {
    return what.isSingle() ? Flux.empty() : Flux.error(e);
  }

  private Flux<Result> unproved(
      Throwable e, Execution what, Checkout c, Lease lease, Duration mayWait, long proofEnd) {
    ReaderConnection reader = lease.connection();
    boolean hidden = e instanceof Proof.PositionHiddenException;
    if (hidden) {
      reader.hidesReplayPosition(true);
    }
    if (hidden || reader.proofs().refused(e)) {
      return again(reader)
          .then(Mono.just(lease))
          .onErrorResume(broken -> this.<Lease>refused(broken, c))
          .flatMapMany(l -> proved(what, c, l, mayWait, proofEnd));
    }
    if (!SqlStates.isStale(e) || mayWait.isZero()) {
      return this.<Result>refused(e, c).flux();
    }
    holding.proving(false);
    return again(reader)
        .then(caughtUp(reader, mayWait))
        .then(Mono.just(lease))
        .onErrorResume(broken -> this.<Lease>refused(broken, c))
        .flatMapMany(l -> proved(what, c, l, Duration.ZERO, proofEnd()));
  }

  /** What a reader did not prove itself by, as the refusal that it is; the reader is let go. */
  private <T> Mono<T> refused(Throwable e, Checkout c) {
    if (e instanceof TimeoutException) {
      c.fail(FailureKind.CONNECTION, e, CloseReason.OPEN_TRANSACTION);
      return Mono.error(RefusedException.of(RouteReason.READER_PROOF_TIMEOUT, e));
    }
    if (SqlStates.isConnection(e)) {
      c.fail(FailureKind.CONNECTION, e, CloseReason.ERROR);
      return Mono.error(RefusedException.of(RouteReason.READER_VALIDATION_ERROR, e));
    }
    holding.proving(false);
    c.end(true, false);
    if (SqlStates.isStale(e)) {
      return Mono.error(RefusedException.of(RouteReason.READER_STALE, e));
    }
    router.unproved(c.reader(), e);
    return Mono.error(RefusedException.of(RouteReason.READER_VALIDATION_ERROR, e));
  }

  /** Out of the transaction that the proof aborted. */
  private Mono<Void> again(ReaderConnection reader) {
    return Proof.rollback(reader.driver())
        .timeout(router.settings().proofTimeout(), router.settings().scheduler());
  }

  /** Completes when the fence holds, or the wait is over. */
  private Mono<Void> caughtUp(ReaderConnection reader, Duration mayWait) {
    return Proof.poll(reader, fence)
        .repeatWhen(
            polls -> polls.delayElements(Proof.POLL_INTERVAL, router.settings().scheduler()))
        .takeUntil(holds -> holds)
        .take(mayWait, router.settings().scheduler())
        .then();
  }

  /** The same on the writer, where the reader is let go. */
  Flux<Result> onWriter(Execution what, RouteReason why) {
    return Flux.defer(
        () -> {
          holding.letGo();
          long began = now();
          return router
              .writer()
              .forRead(deadline, why, holding::take)
              .flatMapMany(
                  lease -> {
                    charge("pg.writer", began);
                    return holding.sending(() -> onWriter(what, why, lease.connection()));
                  });
        });
  }

  private Flux<Result> onWriter(Execution what, RouteReason why, Connection c) {
    holding.proving(true);
    Mono<Boolean> verdict =
        Proof.onWriter(c, statementTimeoutMillis(what))
            .verdict()
            .doOnNext(standby -> bind(c, why))
            .filter(standby -> !standby)
            .switchIfEmpty(Mono.error(() -> new WriterRoleException(null)));
    if (what.isSentLate()) {
      Verdict judged = Verdict.of(verdict, router.settings());
      return watched(
          Flux.from(what.on(c)).map(result -> new ProvedResult(result, judged, Flux::error)),
          what,
          false);
    }
    return watched(
        Verdict.held(Drained.results(what, c), verdict.cache(), router.settings()), what, false);
  }

  private Flux<Result> watched(Publisher<? extends Result> results, Execution what, boolean fresh) {
    return holding
        .running()
        .watched(
            results,
            what,
            (result, done) ->
                new RoutedResult(
                    what.isSentLate()
                        ? new BoundedResult(DrainedResult.of(result, what), holding)
                        : DrainedResult.of(result, what),
                    this,
                    fresh && what.isSingle() ? what : null,
                    done));
  }

  // --- what results tell

  /** Fails when the reader goes out. */
  <T> Mono<T> quarantineSignal() {
    return quarantine.asMono().then(Mono.never());
  }

  /** Where rows failed in mid-stream: a broken connection tells of its reader. */
  void failed(Throwable e) {
    holding.failed(e);
  }

  // --- state

  private void quarantined(QuarantinedException cause) {
    quarantine.tryEmitError(
        new RefusedException(RouteReason.READER_QUARANTINED, "the reader went out", cause));
  }

  private void bind(Connection to, RouteReason why) {
    holding.proved(why);
    connection = to;
    bound.tryEmitEmpty();
  }

  private long now() {
    return router.settings().scheduler().now(TimeUnit.NANOSECONDS);
  }

  private long proofEnd() {
    return now() + router.settings().proofTimeout().toNanos();
  }

  private Duration left(long end) {
    return Duration.ofNanos(Math.max(0, end - now()));
  }

  private void charge(String step, long began) {
    deadline.charge(step, now() - began);
  }

  /** 0 for none: a streamed read's would count a slow consumer's time. (PG-13) */
  private long statementTimeoutMillis(Execution what) {
    boolean bounded = collected == null ? !what.isStreamed() : collected;
    return bounded ? ProofSql.timeout(TimeUnit.NANOSECONDS.toMillis(deadline.remainingNanos())) : 0;
  }
}
