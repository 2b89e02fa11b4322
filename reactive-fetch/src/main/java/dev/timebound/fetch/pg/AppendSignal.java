package dev.timebound.fetch.pg;

import dev.timebound.fetch.TopicPartition;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.util.retry.Retry;

/**
 * Wakes those who wait for an append when any process on the database commits one. It holds one
 * connection, asks it every few seconds whether it lives, and dials anew when it does not; each
 * time it begins to listen it wakes all, since it cannot know what it missed.
 */
final class AppendSignal {
  private static final Logger LOG = LoggerFactory.getLogger(AppendSignal.class);
  private static final Duration CHECK = Duration.ofSeconds(5);
  private static final Duration ANSWER = Duration.ofSeconds(2);
  private static final Duration FIRST_PAUSE = Duration.ofMillis(100);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(5);

  private final PostgresqlConnectionFactory connections;
  private final Scheduler scheduler;
  private final Map<TopicPartition, List<Runnable>> waiting = new ConcurrentHashMap<>();
  private final Sinks.Empty<Void> first = Sinks.empty();
  private volatile boolean listening;
  private @Nullable Disposable running;

  AppendSignal(PostgresqlConnectionFactory connections, Scheduler scheduler) {
    this.connections = connections;
    this.scheduler = scheduler;
  }

  /** Completes once it listens; where that takes long, before it does. */
  Mono<Void> start() {
    running =
        Mono.usingWhen(connections.create(), this::listen, PostgresqlConnection::close)
            .retryWhen(
                Retry.backoff(Long.MAX_VALUE, FIRST_PAUSE)
                    .maxBackoff(LONGEST_PAUSE)
                    .scheduler(scheduler)
                    .transientErrors(true)
                    .doBeforeRetry(
                        signal ->
                            LOG.warn(
                                "Not told of appends for the moment: {}",
                                String.valueOf(signal.failure()))))
            .subscribe();
    return first.asMono().take(ANSWER, scheduler);
  }

  /** Ends with an error only, or a cancel. */
  private Mono<Void> listen(PostgresqlConnection connection) {
    Mono<Void> told =
        connection
            .getNotifications()
            .doOnNext(notification -> wake(notification.getParameter()))
            .then(Mono.error(new IllegalStateException("the connection ended")));
    Mono<Void> checked =
        Flux.interval(CHECK, scheduler)
            .onBackpressureDrop()
            .concatMap(tick -> run(connection, "SELECT 1").timeout(ANSWER, scheduler), 1)
            .then();
    return run(connection, "LISTEN " + LockedPartition.CHANNEL)
        .timeout(ANSWER, scheduler)
        .doOnSuccess(done -> begun())
        .then(Mono.firstWithSignal(told, checked))
        .doFinally(end -> listening = false);
  }

  private static Mono<Void> run(PostgresqlConnection connection, String sql) {
    return connection
        .createStatement(sql)
        .execute()
        .concatMap(result -> result.getRowsUpdated())
        .then();
  }

  private void begun() {
    listening = true;
    waiting.values().forEach(AppendSignal::wakeAll);
    first.tryEmitEmpty();
  }

  private void wake(@Nullable String payload) {
    int slash = payload == null ? -1 : payload.indexOf('/');
    if (payload == null || slash < 1) {
      return;
    }
    try {
      int partition = Integer.parseInt(payload.substring(0, slash));
      wakeAll(
          waiting.getOrDefault(
              new TopicPartition(payload.substring(slash + 1), partition), List.of()));
    } catch (IllegalArgumentException e) {
      LOG.debug("Not one of ours: {}", payload);
    }
  }

  private static void wakeAll(List<Runnable> all) {
    all.forEach(Runnable::run);
  }

  /** Empty while it does not listen: then it is better to ask again from time to time. */
  Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    if (!listening) {
      return Optional.empty();
    }
    waiting.compute(
        partition,
        (key, before) -> {
          List<Runnable> all = before == null ? new CopyOnWriteArrayList<>() : before;
          all.add(wake);
          return all;
        });
    return Optional.of(
        () ->
            waiting.computeIfPresent(
                partition,
                (key, all) -> {
                  all.remove(wake);
                  return all.isEmpty() ? null : all;
                }));
  }

  void close() {
    if (running != null) {
      running.dispose();
    }
  }
}
