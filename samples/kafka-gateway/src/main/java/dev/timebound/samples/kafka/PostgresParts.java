package dev.timebound.samples.kafka;

import dev.timebound.pg.RoutedDatabase;
import dev.timebound.samples.kafka.group.PgGroups;
import dev.timebound.samples.kafka.log.PgTopicLog;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.time.Duration;
import java.util.UUID;
import reactor.core.publisher.Mono;

/**
 * What a gateway keeps in Postgres, on one pool of connections: its log, its groups, their offsets.
 *
 * @param pool its connections; one more listens for appends
 */
public record PostgresParts(
    ConnectionPool pool, RoutedDatabase database, PgTopicLog log, PgGroups groups) {
  /**
   * Makes the tables where they are not there.
   *
   * @param connections {@code >= 1}, and one that listens
   * @param lease after which a gateway that is no more loses its groups
   */
  public static Mono<PostgresParts> open(
      PostgresqlConnectionFactory driver, int connections, Duration lease) {
    // filled at once: a read that is cancelled costs its connection; while none is idle, the next
    // read, of a healthy partition perhaps, waits for a new one and is cut
    ConnectionPool pool =
        new ConnectionPool(
            ConnectionPoolConfiguration.builder(driver)
                .initialSize(connections)
                .maxSize(connections)
                .build());
    // all of it is read where it is written: a place is left for appends at any time
    RoutedDatabase database =
        RoutedDatabase.builder()
            .writer(pool)
            .writerMaxSize(connections)
            .writerSpill(connections < 2 ? 1 : (connections - 1.0) / connections)
            .build();
    // now, and not on an event loop: the source of randomness may block
    String holder = UUID.randomUUID().toString();
    return PgGroups.open(database, holder, lease)
        .flatMap(
            groups ->
                PgTopicLog.open(database, driver, reads(connections), appends(connections))
                    .map(log -> new PostgresParts(pool, database, log, groups))
                    .onErrorResume(
                        error -> groups.close().onErrorComplete().then(Mono.error(error))))
        .onErrorResume(
            error -> database.closeLater().then(pool.disposeLater()).then(Mono.error(error)));
  }

  /** What neither reads nor appends may have is left to leases, commits and topics. */
  private static int reads(int connections) {
    return Math.max(1, connections * 5 / 8);
  }

  private static int appends(int connections) {
    return Math.max(1, connections / 4);
  }

  /** A gateway over this log, its groups and their offsets here too. */
  public KafkaGatewayBuilder gateway() {
    return KafkaGateway.builder(log).home(groups).offsets(groups);
  }

  /** To be called once the gateway has stopped. */
  public Mono<Void> close() {
    return Mono.whenDelayError(groups.close(), log.close())
        .onErrorComplete()
        .then(database.closeLater())
        .then(pool.disposeLater());
  }
}
