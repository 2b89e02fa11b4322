package dev.timebound.fetch.pg;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.RoutedDatabase;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Statement;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import reactor.core.publisher.Mono;

/** Which topics there are: on the writer's word, for none is unknown because a replica lags. */
final class PgTopics {
  private static final String ALL = "SELECT topic, partitions FROM fetch_topic";

  private static final String CREATE =
      """
      WITH made AS (
        INSERT INTO fetch_topic VALUES ($1, $2) ON CONFLICT DO NOTHING
        RETURNING topic, partitions)
      INSERT INTO fetch_partition (topic, partition)
      SELECT topic, generate_series(0, partitions - 1) FROM made
      """;

  private final RoutedDatabase database;

  /** What is known of topics: none is ever deleted, or changes its partitions. */
  private final Map<String, Integer> known = new ConcurrentHashMap<>();

  PgTopics(RoutedDatabase database) {
    this.database = database;
  }

  Mono<Map<String, Integer>> all() {
    return database.readMono(PgReads.AUTHORITY, c -> read(c.createStatement(ALL)));
  }

  Mono<Map<String, Integer>> of(Set<String> names) {
    return Mono.defer(
        () -> {
          Map<String, Integer> found = new HashMap<>();
          for (String name : names) {
            Integer partitions = known.get(name);
            if (partitions != null) {
              found.put(name, partitions);
            }
          }
          return found.size() == names.size() ? Mono.just(found) : asked(names);
        });
  }

  private Mono<Map<String, Integer>> asked(Set<String> names) {
    return database.readMono(
        PgReads.AUTHORITY,
        c ->
            read(
                c.createStatement(ALL + " WHERE topic = ANY($1)")
                    .bind(0, names.toArray(String[]::new))));
  }

  private Mono<Map<String, Integer>> read(Statement statement) {
    return Rows.read(
            statement,
            row ->
                Map.entry(
                    Objects.requireNonNull(row.get("topic", String.class)),
                    Rows.small(row, "partitions")))
        .collectMap(Map.Entry::getKey, Map.Entry::getValue)
        .doOnNext(known::putAll);
  }

  Mono<Integer> create(String topic, int partitions) {
    return database
        .writeMono(c -> create(c, topic, partitions))
        .then(of(Set.of(topic)))
        .map(found -> Objects.requireNonNull(found.get(topic)));
  }

  private static Mono<Long> create(Connection connection, String topic, int partitions) {
    return Rows.done(connection.createStatement(CREATE).bind(0, topic).bind(1, partitions));
  }

  Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
    return of(asked.stream().map(TopicPartition::topic).collect(Collectors.toUnmodifiableSet()))
        .map(
            found -> {
              Set<TopicPartition> there = new LinkedHashSet<>(asked);
              there.removeIf(each -> each.partition() >= found.getOrDefault(each.topic(), 0));
              return there;
            });
  }
}
