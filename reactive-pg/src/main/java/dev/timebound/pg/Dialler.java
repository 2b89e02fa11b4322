package dev.timebound.pg;

import io.netty.channel.Channel;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.netty.FutureMono;
import reactor.netty.tcp.TcpResources;

/** Dials one reader. Each dial is bounded, and one that fails leaves no socket behind. (PG-4) */
final class Dialler {
  private final Supplier<PostgresqlConnectionConfiguration.Builder> config;
  private final PgSettings settings;
  private final SessionSettings session;
  private final Set<Channel> open = ConcurrentHashMap.newKeySet();

  /**
   * @param config where and as whom to connect; asked before each dial, for credentials that
   *     change. What it sets as {@code options}, {@code loopResources} and {@code
   *     autodetectExtensions} is overridden.
   */
  Dialler(
      String reader,
      Supplier<PostgresqlConnectionConfiguration.Builder> config,
      PgSettings settings) {
    this.config = config;
    this.settings = settings;
    this.session = new SessionSettings(reader, settings.defaultReadTimeout());
  }

  /** For one dial. */
  Sockets sockets() {
    return new Sockets(TcpResources.get(), open);
  }

  /**
   * Connects and sets the session up. Nothing of the subscriber's Context reaches the dial, and it
   * does not start on the subscriber's thread: certificates may be read from files, and Netty keeps
   * a connection on the event loop that dials it, so that all would come to share a busy one.
   *
   * @return the connection; an error where it failed, a {@link TimeoutException} past the dial
   *     timeout. After an error or a cancel all of those sockets are closed, even where a
   *     connection came at the same moment.
   */
  Mono<ReaderConnection> dial(Sockets sockets) {
    return attempt(sockets)
        .timeout(
            settings.dialTimeout(),
            Mono.error(() -> new TimeoutException("no session within " + settings.dialTimeout())),
            settings.scheduler())
        .map(driver -> new ReaderConnection(driver, sockets, settings))
        .doOnError(failed -> sockets.abort())
        .doOnCancel(sockets::abort)
        .contextWrite(callers -> Quiet.CONTEXT);
  }

  private Mono<PostgresqlConnection> attempt(Sockets sockets) {
    Mono<PostgresqlConnection> attempt =
        Mono.defer(
            () -> {
              SessionSettings.Plan plan = session.plan();
              PostgresqlConnectionConfiguration.Builder builder = config.get();
              builder
                  // each dial would ask the server for the types of all extensions: four round
                  // trips
                  .autodetectExtensions(false)
                  .loopResources(sockets)
                  .options(plan.startup());
              return new PostgresqlConnectionFactory(builder.build())
                  .create()
                  .delayUntil(driver -> session.afterConnecting(plan, driver))
                  .onErrorResume(
                      failure -> {
                        if (!session.learn(plan, failure)) {
                          return Mono.error(failure);
                        }
                        sockets.closeOpen();
                        return attempt(sockets);
                      });
            });
    return attempt.subscribeOn(Schedulers.boundedElastic());
  }

  /** How many sockets to this reader are open, of dials, probes and cancel requests too. */
  int openSockets() {
    return open.size();
  }

  /** Closes every socket. */
  void closeAll() {
    open.forEach(Sockets::closeNow);
  }

  /** Completes when all sockets that are open now have closed. */
  Mono<Void> allClosed() {
    return Flux.fromIterable(Set.copyOf(open))
        .flatMap(channel -> FutureMono.from(channel.closeFuture()).onErrorComplete(), 1024)
        .then();
  }
}
