package dev.timebound.pg;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.HealthPolicy;
import dev.timebound.health.MemberHealth;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A Postgres writer and its replicas. Reads go to a replica that proves itself in the round trip of
 * the read itself, and to the writer where none can, so that a frozen, stale or dead replica costs
 * a read at most about the proof timeout and no error. Thread-safe.
 *
 * <pre>{@code
 * RoutedDatabase db = RoutedDatabase.builder()
 *     .writer(pool)
 *     .reader("replica-1", c -> c.host("replica-1").database("shop").username("app").password(secret))
 *     .build();
 *
 * Flux<Order> open = db.read(c ->
 *     Flux.from(c.createStatement("SELECT * FROM orders WHERE customer = $1").bind(0, id).execute())
 *         .flatMap(r -> r.map(Order::of)));
 * }</pre>
 */
public final class RoutedDatabase implements AutoCloseable {
  /** Under which its readers stand in the health engine. */
  public static final String GROUP = "pg";

  private static final Duration PROBE_INTERVAL = Duration.ofMillis(250);
  private static final Duration PROBE_LIMIT = Duration.ofSeconds(1);
  private static final int FAILURES = 3;

  private final Router router;
  private final RoutingConnectionFactory factory;
  private final List<Reader> readers = new ArrayList<>();
  private final HealthEngine engine;
  private final boolean ownEngine;
  private final HealthGroup<Reader> group;
  private final @Nullable Heartbeat heartbeat;
  private final AtomicBoolean started = new AtomicBoolean();
  private final AtomicBoolean closed = new AtomicBoolean();

  RoutedDatabase(RoutedDatabaseBuilder b) {
    PgSettings settings = b.settings();
    PgMeters meters = PgMeters.of(b.meters);
    ownEngine = b.engine == null;
    engine =
        b.engine == null
            ? HealthEngine.builder().scheduler(settings.scheduler()).build()
            : b.engine;
    // PG-30: no backoff, and no cap on how many may be out, for the writer is behind them
    group =
        engine.group(
            b.group,
            HealthPolicy.consecutiveFailures(FAILURES)
                .restoredByProbe(PROBE_LIMIT)
                .probeInterval(PROBE_INTERVAL, PROBE_INTERVAL)
                .ownFallback()
                .build());
    b.readers.forEach(
        (name, config) -> {
          Reader reader = new Reader(name, new ReaderPool(name, config, settings, meters));
          readers.add(reader);
          group.add(reader);
        });
    WriterGate writer = new WriterGate(b.writer(), b.writerPlaces(), settings);
    router = new Router(group, writer, settings, meters);
    factory = new RoutingConnectionFactory(router);
    heartbeat = b.heartbeat == null ? null : new Heartbeat(router, b.heartbeat);
    meters.gauge("timebound.pg.writer.spill.taken", b.group, writer, WriterGate::taken);
    meters.gauge("timebound.pg.writer.spill.waiting", b.group, writer, WriterGate::waiting);
  }

  public static RoutedDatabaseBuilder builder() {
    return new RoutedDatabaseBuilder();
  }

  /**
   * Begins to fill the readers' pools to their floor, and to move the heartbeat, in the background.
   * The first read or write does it too. Idempotent. (PG-1)
   */
  public RoutedDatabase start() {
    if (!closed.get() && started.compareAndSet(false, true)) {
      readers.forEach(r -> r.pool().start());
      if (heartbeat != null) {
        heartbeat.start();
      }
    }
    return this;
  }

  /**
   * A read whose rows are streamed: no statement timeout on the server, which would count a slow
   * consumer's time. Runs in a read-only, REPEATABLE READ transaction, on whichever server {@code
   * work}'s first statement finds; ended when what {@code work} returns has ended, after the caller
   * has its answer. {@code work} is called for each subscription and may be called once only per
   * subscription: where a reader is refused, its first statement is executed again elsewhere, not
   * {@code work}. Bounded by the caller's deadline, or {@code defaultReadTimeout}.
   *
   * <p>After {@link #close} reads, writes and connections fail with {@link IllegalStateException}.
   */
  public <T> Flux<T> read(Function<? super Connection, ? extends Publisher<T>> work) {
    return read(ReadOptions.defaults(), work);
  }

  /** The same, with what this read asks of its route. */
  public <T> Flux<T> read(
      ReadOptions options, Function<? super Connection, ? extends Publisher<T>> work) {
    return reading(options, false, work);
  }

  /**
   * A read whose rows are collected, into one answer: what is left of the deadline bounds each
   * statement on the server too. Else as {@link #read(Function)}. Where {@code work} gives more
   * than one item it is an {@link IndexOutOfBoundsException}: collect them in {@code work}.
   */
  public <T> Mono<T> readMono(Function<? super Connection, ? extends Publisher<T>> work) {
    return readMono(ReadOptions.defaults(), work);
  }

  /** The same, with what this read asks of its route. */
  public <T> Mono<T> readMono(
      ReadOptions options, Function<? super Connection, ? extends Publisher<T>> work) {
    return reading(options, true, work).singleOrEmpty();
  }

  private <T> Flux<T> reading(
      ReadOptions options,
      boolean collected,
      Function<? super Connection, ? extends Publisher<T>> work) {
    Settings.required("options", options);
    Settings.required("work", work);
    return Flux.deferContextual(
        context -> {
          router.open();
          start();
          Deadline deadline = router.deadline(context);
          ReadSession session =
              new ReadSession(
                  router,
                  options,
                  options.fence().and(ReadYourWrites.fence(context)),
                  deadline,
                  collected);
          Flux<T> rows =
              Flux.<T>defer(() -> work.apply(new RoutedConnection(router, session)))
                  .doOnTerminate(() -> session.end(true))
                  .doOnCancel(() -> session.end(false));
          return Deadlines.<T>of(deadline, "pg.read").apply(new LeftByThrowing<>(rows));
        });
  }

  /**
   * A transaction on the writer: committed when what {@code work} returns completes, rolled back
   * when it fails or is cancelled. Under {@link ReadYourWrites#scope} later reads see it. (PG-14,
   * PG-21)
   *
   * <p>Items reach the caller before the commit. So an operator that leaves with the first of them,
   * {@code next()}, {@code take(1)} or {@code blockFirst()}, has the transaction rolled back:
   * {@link #writeMono} is for one answer.
   */
  public <T> Flux<T> write(Function<? super Connection, ? extends Publisher<T>> work) {
    Settings.required("work", work);
    return Flux.deferContextual(
        context -> {
          router.open();
          start();
          Flux<T> rows =
              Flux.usingWhen(
                  Mono.fromSupplier(() -> new RoutedConnection(router)),
                  c -> Mono.from(c.beginTransaction()).thenMany(Flux.defer(() -> work.apply(c))),
                  c -> closing(c, c.commitTransaction()),
                  (c, e) -> closing(c, c.rollbackTransaction()),
                  c -> closing(c, c.rollbackTransaction()));
          return Deadlines.<T>of(Deadlines.current(context), "pg.write")
              .apply(new LeftByThrowing<>(rows));
        });
  }

  /**
   * A write with one answer, which reaches the caller once it is committed. Where {@code work}
   * gives more than one item it is an {@link IndexOutOfBoundsException}, and rolled back.
   */
  public <T> Mono<T> writeMono(Function<? super Connection, ? extends Publisher<T>> work) {
    return write(work).singleOrEmpty();
  }

  private static Mono<Void> closing(Connection c, Publisher<Void> last) {
    return Mono.from(last)
        .materialize()
        .flatMap(end -> Mono.from(c.close()).then(Mono.just(end)))
        .<Void>dematerialize();
  }

  /** Where the writer's log is now, as a fence: what has committed by then satisfies it. */
  public Mono<Fence> fence() {
    return router.position().map(Fence::at);
  }

  /**
   * The same database for frameworks. Always the same object: by it Spring knows that a transaction
   * manager and a client mean the same connection.
   */
  public RoutingConnectionFactory connectionFactory() {
    start();
    return factory;
  }

  /**
   * Creates the heartbeat's table, {@code timebound_heartbeat}, on the writer where it is not
   * there. For those who do not do it by their own migrations.
   */
  public Mono<Void> createHeartbeat() {
    return router.ask(Heartbeat.CREATE).then();
  }

  /**
   * Each promotion of a reader from the moment of subscription on, told once, on the database's
   * Scheduler; completes when the database is closed. Hot and multicast; a listener that is too
   * slow loses what it has not taken. What the health engine decides of readers is in its own
   * events. (PG-14a)
   */
  public Flux<ReaderPromoted> promotions() {
    return router.promotions();
  }

  /** How each reader stands. */
  public Collection<MemberHealth> readers() {
    return group.members();
  }

  /**
   * Ends reader connections, timers and probes; reads under way fail. The writer's factory is the
   * caller's and stays open.
   */
  public Mono<Void> closeLater() {
    return Mono.defer(
        () -> {
          if (!closed.compareAndSet(false, true)) {
            return Mono.empty();
          }
          if (heartbeat != null) {
            heartbeat.stop();
          }
          router.close();
          engine.remove(group);
          if (ownEngine) {
            engine.close();
          }
          return Flux.fromIterable(readers).flatMap(r -> r.pool().close()).then();
        });
  }

  /** The same; does not wait. */
  @Override
  public void close() {
    closeLater().subscribe();
  }
}
