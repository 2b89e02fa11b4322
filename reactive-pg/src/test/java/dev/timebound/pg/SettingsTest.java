package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.util.context.Context;

@DisplayName("a setting that cannot be is refused where it is set, by name, value and expectation")
class SettingsTest {
  private final ConnectionFactory writer =
      ConnectionFactories.get("r2dbc:postgresql://app@localhost/shop");

  private static void refused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  @DisplayName("of the builder")
  void builder() {
    RoutedDatabaseBuilder b = RoutedDatabase.builder();
    refused(b::build, "writer: none (expected: a connection factory)");
    refused(() -> b.writerSpill(0), "writerSpill: 0.0 (expected: above 0, up to 1)");
    refused(() -> b.writerSpill(Double.NaN), "writerSpill: NaN (expected: above 0, up to 1)");
    refused(() -> b.writerMaxSize(0), "writerMaxSize: 0 (expected: >= 1)");
    refused(() -> b.readerMaxSize(0), "readerMaxSize: 0 (expected: >= 1)");
    refused(() -> b.readerMinIdle(0), "readerMinIdle: 0 (expected: >= 1)");
    refused(() -> b.readerMaxPending(-1), "readerMaxPending: -1 (expected: >= 0)");
    refused(() -> b.acquireTimeout(Duration.ZERO), "acquireTimeout: PT0S (expected: > 0)");
    refused(() -> b.proofTimeout(Duration.ZERO), "proofTimeout: PT0S (expected: > 0)");
    refused(() -> b.cancelGrace(Duration.ofMillis(-1)), "cancelGrace: PT-0.001S (expected: >= 0)");
    refused(() -> b.heartbeat(Duration.ofMillis(9)), "heartbeat: PT0.009S (expected: >= PT0.01S)");
    refused(() -> b.reader(" ", c -> {}), "reader: ' ' (expected: not blank)");
    b.reader("a", c -> c.host("a").username("app"));
    refused(() -> b.reader("a", c -> {}), "reader: a (expected: not yet among the readers)");
    refused(
        () -> b.writer(writer).readerMaxSize(2).readerMinIdle(3).build(),
        "readerMinIdle: 3 (expected: at most readerMaxSize, 2)");
  }

  @Test
  @DisplayName("of a reader that cannot be dialled, which is said at once and not by a log line")
  void reader() {
    RoutedDatabaseBuilder b = RoutedDatabase.builder().writer(writer);
    refused(
        () ->
            b.reader(
                "pooled", ConnectionFactoryOptions.parse("r2dbc:pool:postgresql://app@a/shop")),
        "reader pooled: driver pool (expected: postgresql, without a pool)");
    assertThat(
            b.reader("by-url", ConnectionFactoryOptions.parse("r2dbc:postgresql://app@a/shop"))
                .reader(
                    "no-secret-now",
                    c -> {
                      throw new IllegalStateException("the secrets' store is down");
                    })
                .settings())
        .isNotNull();
    b.reader("nameless", c -> c.host("a"));
    assertThatThrownBy(b::build)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("reader nameless: ")
        .hasMessageContaining("username");
  }

  @Test
  @DisplayName("what does not fit the clocks is refused, and a null is told by name")
  void outOfBounds() {
    RoutedDatabaseBuilder b = RoutedDatabase.builder();
    Duration huge = Duration.ofSeconds(Long.MAX_VALUE);
    List<Consumer<Duration>> durations =
        List.of(
            b::acquireTimeout,
            b::dialTimeout,
            b::proofTimeout,
            b::releaseTimeout,
            b::closeTimeout,
            b::cancelGrace,
            b::cancelTimeout,
            b::maxLifetime,
            b::idleTimeout,
            b::defaultReadTimeout,
            b::heartbeat,
            Fence::maxStaleness,
            ReadOptions.defaults()::waitForFence);
    for (Consumer<Duration> setter : durations) {
      assertThatThrownBy(() -> setter.accept(huge))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("(expected: at most PT");
    }
    assertThat(Duration.ofDays(36_500).toNanos()).isPositive();
    refused(() -> b.heartbeat(Duration.ofDays(2)), "heartbeat: PT48H (expected: at most PT24H)");
  }

  @Test
  @DisplayName(
      "PG-1 the floor is a fifth of the most, at least 1; PG-32 the spill half of the writer's")
  void derived() {
    RoutedDatabaseBuilder b = RoutedDatabase.builder().writer(writer);
    assertThat(b.settings().minIdle()).isEqualTo(2);
    assertThat(b.readerMaxSize(3).settings().minIdle()).isEqualTo(1);
    assertThat(b.writerPlaces()).isEqualTo(5);
    assertThat(b.writerMaxSize(1).writerPlaces()).isEqualTo(1);
    assertThat(b.writerMaxSize(40).writerSpill(0.25).writerPlaces()).isEqualTo(10);
  }

  @Test
  @DisplayName("PG-1 building dials nothing, and closing what never began leaves nothing")
  void dialsNothing() {
    RoutedDatabase db =
        RoutedDatabase.builder()
            .writer(writer)
            .reader("nowhere", c -> c.host("192.0.2.1").username("app").database("shop"))
            .build();
    assertThat(db.readers()).singleElement().matches(r -> r.open() == 0);
    db.closeLater().block(Duration.ofSeconds(10));
    assertThat(db.readers()).isNotNull();
  }

  @Test
  @DisplayName("PG-14a who hears of promotions hears of the database's end")
  void promotionsEnd() {
    RoutedDatabase db = RoutedDatabase.builder().writer(writer).build();
    CompletableFuture<Long> heard = db.promotions().count().toFuture();
    db.closeLater().block(Duration.ofSeconds(10));
    assertThat(heard).succeedsWithin(Duration.ofSeconds(10)).isEqualTo(0L);
  }

  @Test
  @DisplayName("PG-20 of fences, positions and tokens")
  void fences() {
    for (String bad :
        new String[] {
          "",
          "/",
          "1/",
          "/1",
          "g/1",
          "1/123456789",
          "123456789/1",
          "000000001/1",
          "1/000000001",
          "-1/1",
          "+1/1",
          "1/+1",
          "1"
        }) {
      refused(() -> Fence.at(bad), "lsn: " + bad + " (expected: like 16/B374D848)");
    }
    assertThat(Fence.at("16/b374d848")).hasToString("at 16/B374D848");
    assertThat(Fence.at("FFFFFFFF/FFFFFFFF")).hasToString("at FFFFFFFF/FFFFFFFF");
    refused(() -> Fence.maxStaleness(Duration.ZERO), "maxStaleness: PT0S (expected: >= PT0.001S)");
    Fence both = Fence.at("1/0").and(Fence.maxStaleness(Duration.ofSeconds(2)));
    assertThat(both.and(Fence.at("0/FF")).and(Fence.maxStaleness(Duration.ofSeconds(3))))
        .isEqualTo(both)
        .hasToString("at 1/0, within PT2S");
    assertThat(Fence.at("FFFFFFFF/0").and(Fence.at("1/0"))).isEqualTo(Fence.at("FFFFFFFF/0"));
    assertThat(Fence.none().isNone()).isTrue();
    assertThat(Fence.at("0/1").isNone()).isFalse();
    Fence two = Fence.maxStaleness(Duration.ofSeconds(2));
    assertThat(two.isNone()).isFalse();
    assertThat(two).hasToString("within PT2S").isNotEqualTo(both);
    assertThat(Fence.none()).hasToString("none");
    assertThat(Fence.none().and(two)).isEqualTo(two).hasSameHashCodeAs(two);
    assertThat(two.and(Fence.none())).isEqualTo(two);
    refused(
        () -> ReadOptions.defaults().waitForFence(Duration.ofMillis(-1)),
        "waitForFence: PT-0.001S (expected: >= 0)");
    assertThat(ReadYourWrites.token(Context.empty())).isEmpty();
    assertThat(ReadYourWrites.fence(Context.empty())).isEqualTo(Fence.none());
  }
}
