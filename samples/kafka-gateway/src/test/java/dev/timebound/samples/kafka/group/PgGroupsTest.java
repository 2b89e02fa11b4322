package dev.timebound.samples.kafka.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.pg.RoutedDatabase;
import dev.timebound.samples.kafka.group.OffsetStore.Committed;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresServer;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.common.errors.NotCoordinatorException;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@NullUnmarked // fields are set before each test
class PgGroupsTest {
  private static final PostgresServer SERVER = PostgresReplicaSet.shared().primary();
  private static final String GROUP = "g";
  private static final Node ONE = new Node(1, "one", 9092);
  private static final Node OTHER = new Node(2, "other", 9093);
  private static final TopicPartition PARTITION = new TopicPartition("t", 3);

  private ConnectionPool pool;
  private RoutedDatabase database;
  private PgGroups one;
  private PgGroups other;

  @BeforeEach
  void open() {
    pool =
        new ConnectionPool(
            ConnectionPoolConfiguration.builder(
                    new PostgresqlConnectionFactory(
                        PostgresqlConnectionConfiguration.builder()
                            .host(SERVER.host())
                            .port(SERVER.port())
                            .username(SERVER.user())
                            .database(SERVER.database())
                            .build()))
                .initialSize(0)
                .maxSize(4)
                .build());
    database = RoutedDatabase.builder().writer(pool).build();
    one = PgGroups.open(database, "one", Duration.ofMinutes(1)).block();
    other = PgGroups.open(database, "other", Duration.ofMinutes(1)).block();
  }

  @AfterEach
  void close() {
    one.close().block();
    other.close().block();
    assertThat(SERVER.value("SELECT count(*) FROM kafka_group_slot")).isEqualTo("0");
    database.closeLater().block();
    pool.disposeLater().block();
    SERVER.execute("DROP TABLE kafka_group_slot, kafka_group_offset");
  }

  private static Map<TopicPartition, Committed> at(long offset) {
    return Map.of(PARTITION, new Committed(offset, -1, "m"));
  }

  @Test
  @DisplayName("who asks first has the group, and all are told so")
  void firstHasIt() {
    assertThat(one.isHere(GROUP)).isFalse();
    assertThat(one.of(GROUP, ONE).block()).isEqualTo(ONE);
    assertThat(other.of(GROUP, OTHER).block()).isEqualTo(ONE);

    assertThat(one.isHere(GROUP)).isTrue();
    assertThat(other.isHere(GROUP)).isFalse();
  }

  @Test
  @DisplayName("one that closes gives its groups away; their offsets stay")
  void givenAway() {
    one.of(GROUP, ONE).block();
    one.commit(GROUP, at(17)).block();
    one.close().block();

    assertThat(one.isHere(GROUP)).isFalse();
    assertThat(other.of(GROUP, OTHER).block()).isEqualTo(OTHER);
    assertThat(other.committed(GROUP).block()).isEqualTo(at(17));
    other.commit(GROUP, at(18)).block();
    assertThat(other.committed(GROUP).block()).isEqualTo(at(18));
    assertThat(other.committed("another").block()).isEmpty();
  }

  @Test
  @DisplayName("offsets are the writer's word, however far a standby lags")
  void ofTheWriter() {
    one.of(GROUP, ONE).block();
    one.commit(GROUP, at(17)).block();
    PostgresServer standby = PostgresReplicaSet.shared().standby();
    standby.awaitReplay();
    RoutedDatabase routed =
        RoutedDatabase.builder()
            .writer(pool)
            .reader(
                "standby",
                config ->
                    config
                        .host(standby.host())
                        .port(standby.port())
                        .username(standby.user())
                        .database(standby.database()))
            .build();
    standby.pauseReplay();
    try {
      PgGroups lagging = PgGroups.open(routed, "lagging", Duration.ofMinutes(1)).block();
      one.commit(GROUP, at(18)).block();
      assertThat(lagging.committed(GROUP).block()).isEqualTo(at(18));
      lagging.close().block();
    } finally {
      standby.resumeReplay();
      routed.closeLater().block();
    }
  }

  @Test
  @DisplayName(
      "a lease that ran out is anyone's; who had it commits nothing any more, even if it"
          + " does not know yet")
  void fenced() {
    one.of(GROUP, ONE).block();
    one.commit(GROUP, at(17)).block();
    SERVER.execute("UPDATE kafka_group_slot SET expires = clock_timestamp() - interval '1 s'");

    assertThat(other.of(GROUP, OTHER).block()).isEqualTo(OTHER);

    assertThat(one.isHere(GROUP)).isTrue();
    assertThatThrownBy(() -> one.commit(GROUP, at(99)).block())
        .isInstanceOf(NotCoordinatorException.class);
    assertThat(other.committed(GROUP).block()).isEqualTo(at(17));
    assertThat(one.of(GROUP, ONE).block()).isEqualTo(OTHER);
    assertThat(one.isHere(GROUP)).isFalse();
  }
}
