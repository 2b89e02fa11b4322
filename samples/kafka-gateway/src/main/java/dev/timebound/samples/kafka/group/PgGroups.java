package dev.timebound.samples.kafka.group;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.ReadOptions;
import dev.timebound.pg.RoutedDatabase;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.kafka.common.errors.NotCoordinatorException;
import org.reactivestreams.Publisher;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Groups' homes and offsets in Postgres, for any number of gateways.
 *
 * <p>A group belongs to a slot by its name, and a slot to the gateway that holds its lease. A lease
 * is renewed while its gateway lives, and is anyone's once it ran out. Its holder counts it from
 * before it asked for it, and thus thinks it over no later than the others do; and it commits
 * offsets only in a transaction that finds the lease to be still its own. Thread-safe.
 */
public final class PgGroups implements GroupHome, OffsetStore {
  static final int SLOTS = 32;

  private static final Logger LOG = LoggerFactory.getLogger(PgGroups.class);

  private static final List<String> TABLES =
      List.of(
          "SELECT pg_advisory_xact_lock(7305808869229538157)",
          """
          CREATE TABLE IF NOT EXISTS kafka_group_slot (
            slot int PRIMARY KEY,
            holder text NOT NULL,
            node int NOT NULL,
            host text NOT NULL,
            port int NOT NULL,
            expires timestamptz NOT NULL)
          """,
          """
          CREATE TABLE IF NOT EXISTS kafka_group_offset (
            group_id text NOT NULL,
            topic text NOT NULL,
            partition int NOT NULL,
            next_offset bigint NOT NULL,
            leader_epoch int NOT NULL,
            metadata text NOT NULL,
            PRIMARY KEY (group_id, topic, partition))
          """);

  private static final String TAKE =
      """
      INSERT INTO kafka_group_slot AS held
      VALUES ($1, $2, $3, $4, $5, clock_timestamp() + $6 * interval '1 millisecond')
      ON CONFLICT (slot) DO UPDATE SET
        holder = EXCLUDED.holder, node = EXCLUDED.node, host = EXCLUDED.host,
        port = EXCLUDED.port, expires = EXCLUDED.expires
      WHERE held.holder = EXCLUDED.holder OR held.expires < clock_timestamp()
      """;

  private static final String HOLDER =
      "SELECT holder, node, host, port FROM kafka_group_slot WHERE slot = $1";

  private static final String RENEW =
      """
      UPDATE kafka_group_slot SET expires = clock_timestamp() + $2 * interval '1 millisecond'
      WHERE holder = $1 RETURNING slot
      """;

  private static final String COMMIT =
      """
      WITH mine AS (
        SELECT slot FROM kafka_group_slot WHERE slot = $1 AND holder = $2 FOR SHARE)
      INSERT INTO kafka_group_offset
      SELECT $3, o.* FROM mine,
        unnest($4::text[], $5::int[], $6::bigint[], $7::int[], $8::text[]) AS o
      ON CONFLICT (group_id, topic, partition) DO UPDATE SET
        next_offset = EXCLUDED.next_offset,
        leader_epoch = EXCLUDED.leader_epoch,
        metadata = EXCLUDED.metadata
      """;

  private static final String COMMITTED =
      """
      SELECT topic, partition, next_offset, leader_epoch, metadata
      FROM kafka_group_offset WHERE group_id = $1
      """;

  private static final ReadOptions WRITER = ReadOptions.defaults().onWriter();

  private final RoutedDatabase database;
  private final Duration lease;
  private final Scheduler scheduler = Schedulers.parallel();
  private final String holder;

  /** Until when each slot is this gateway's, on the scheduler's clock; 0 for not at all. */
  private final AtomicLongArray heldUntil = new AtomicLongArray(SLOTS);

  private final Disposable renewal;

  private PgGroups(RoutedDatabase database, String holder, Duration lease) {
    this.holder = holder;
    this.database = database;
    this.lease = lease;
    this.renewal =
        Flux.interval(lease.dividedBy(3), scheduler)
            .onBackpressureDrop()
            .concatMap(tick -> renew(), 1)
            .subscribe();
  }

  /**
   * Makes the tables where they are not there.
   *
   * @param holder unlike every other gateway's, and every earlier start's
   * @param lease after which a gateway that is no more loses its groups; a few seconds
   */
  public static Mono<PgGroups> open(RoutedDatabase database, String holder, Duration lease) {
    return database
        .write(
            connection ->
                Flux.fromIterable(TABLES)
                    .concatMap(sql -> connection.createStatement(sql).execute())
                    .concatMap(Result::getRowsUpdated))
        .then(Mono.fromSupplier(() -> new PgGroups(database, holder, lease)));
  }

  /** Renews no more, and gives the groups to whoever asks for them. */
  public Mono<Void> close() {
    return Mono.defer(
        () -> {
          renewal.dispose();
          for (int slot = 0; slot < SLOTS; slot++) {
            heldUntil.set(slot, 0);
          }
          return database
              .writeMono(
                  connection ->
                      updated(
                          connection
                              .createStatement("DELETE FROM kafka_group_slot WHERE holder = $1")
                              .bind(0, holder)
                              .execute()))
              .then();
        });
  }

  static int slot(String group) {
    return Math.floorMod(group.hashCode(), SLOTS);
  }

  private long now() {
    return scheduler.now(TimeUnit.NANOSECONDS);
  }

  @Override
  public boolean isHere(String group) {
    long until = heldUntil.get(slot(group));
    return until != 0 && now() - until < 0;
  }

  @Override
  public Mono<Node> of(String group, Node self) {
    return Mono.defer(
        () -> {
          int slot = slot(group);
          long asked = now();
          return database
              .writeMono(connection -> take(connection, slot, self).then(holder(connection, slot)))
              .map(
                  held -> {
                    if (!held.holder.equals(holder)) {
                      heldUntil.set(slot, 0);
                      return held.node;
                    }
                    heldUntil.set(slot, end(asked));
                    return self;
                  });
        });
  }

  private record Held(String holder, Node node) {}

  private Mono<Long> take(Connection connection, int slot, Node self) {
    return updated(
        connection
            .createStatement(TAKE)
            .bind(0, slot)
            .bind(1, holder)
            .bind(2, self.id())
            .bind(3, self.host())
            .bind(4, self.port())
            .bind(5, (double) lease.toMillis())
            .execute());
  }

  private static Mono<Held> holder(Connection connection, int slot) {
    return Mono.defer(
        () ->
            Flux.from(connection.createStatement(HOLDER).bind(0, slot).execute())
                .concatMap(
                    result ->
                        result.map(
                            (row, meta) ->
                                new Held(
                                    row.get("holder", String.class),
                                    new Node(
                                        row.get("node", Integer.class),
                                        row.get("host", String.class),
                                        row.get("port", Integer.class)))))
                .single());
  }

  /** Never 0, which stands for no lease. */
  private long end(long asked) {
    long end = asked + lease.toNanos();
    return end == 0 ? 1 : end;
  }

  private Mono<Void> renew() {
    return Mono.defer(
        () -> {
          long asked = now();
          return database
              .writeMono(
                  connection ->
                      Flux.from(
                              connection
                                  .createStatement(RENEW)
                                  .bind(0, holder)
                                  .bind(1, (double) lease.toMillis())
                                  .execute())
                          .concatMap(result -> result.map((row, meta) -> slotOf(row)))
                          .collectList())
              .timeout(lease, scheduler)
              .doOnNext(renewed -> renewed.forEach(slot -> heldUntil.set(slot, end(asked))))
              .doOnError(error -> LOG.warn("Leases of groups not renewed: {}", error.toString()))
              .onErrorComplete()
              .then();
        });
  }

  private static int slotOf(io.r2dbc.spi.Row row) {
    return row.get(0, Integer.class);
  }

  @Override
  public Mono<Void> commit(String group, Map<TopicPartition, Committed> offsets) {
    if (offsets.isEmpty()) {
      return Mono.empty();
    }
    // in one order, so that two commits never wait for each other
    List<Map.Entry<TopicPartition, Committed>> all = new ArrayList<>(offsets.entrySet());
    all.sort(
        Comparator.comparing((Map.Entry<TopicPartition, Committed> e) -> e.getKey().topic())
            .thenComparing(e -> e.getKey().partition()));
    return database
        .writeMono(connection -> commit(connection, group, all))
        .flatMap(
            rows ->
                rows == 0
                    ? Mono.error(new NotCoordinatorException("the group went elsewhere"))
                    : Mono.empty());
  }

  private Mono<Long> commit(
      Connection connection, String group, List<Map.Entry<TopicPartition, Committed>> all) {
    return updated(
        connection
            .createStatement(COMMIT)
            .bind(0, slot(group))
            .bind(1, holder)
            .bind(2, group)
            .bind(3, all.stream().map(e -> e.getKey().topic()).toArray(String[]::new))
            .bind(4, all.stream().map(e -> e.getKey().partition()).toArray(Integer[]::new))
            .bind(5, all.stream().map(e -> e.getValue().offset()).toArray(Long[]::new))
            .bind(6, all.stream().map(e -> e.getValue().leaderEpoch()).toArray(Integer[]::new))
            .bind(7, all.stream().map(e -> e.getValue().metadata()).toArray(String[]::new))
            .execute());
  }

  private static Mono<Long> updated(Publisher<? extends Result> results) {
    return Flux.from(results).concatMap(Result::getRowsUpdated).reduce(0L, Long::sum);
  }

  @Override
  public Mono<Map<TopicPartition, Committed>> committed(String group) {
    return database.readMono(
        WRITER, // a standby may not have the last commit yet: records twice, or none
        connection ->
            Flux.from(connection.createStatement(COMMITTED).bind(0, group).execute())
                .concatMap(
                    result ->
                        result.map(
                            (row, meta) ->
                                Map.entry(
                                    new TopicPartition(
                                        row.get("topic", String.class),
                                        row.get("partition", Integer.class)),
                                    new Committed(
                                        row.get("next_offset", Long.class),
                                        row.get("leader_epoch", Integer.class),
                                        row.get("metadata", String.class)))))
                .collectMap(Map.Entry::getKey, Map.Entry::getValue));
  }
}
