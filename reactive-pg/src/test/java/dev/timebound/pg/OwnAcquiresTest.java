package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.reactivestreams.Publisher;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.test.scheduler.VirtualTimeScheduler;

/** An acquire that is cancelled in the moment that it is served loses the connection for good. */
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-16 PG-20 the module's own acquires of the writer are not cancelled")
class OwnAcquiresTest {
  private final Routed routed;
  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicInteger cancelled = new AtomicInteger();
  private final Sinks.Empty<Void> free = Sinks.empty();

  OwnAcquiresTest(PostgresReplicaSet servers) {
    this.routed = Routed.on(servers);
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  /** A pool without a free connection, until it has one. */
  private final ConnectionFactory busy =
      new ConnectionFactory() {
        @Override
        public Publisher<? extends Connection> create() {
          return free.asMono()
              .then(Mono.defer(() -> routed.writerPool.create()))
              .doOnSubscribe(s -> asked.incrementAndGet())
              .doOnCancel(cancelled::incrementAndGet);
        }

        @Override
        public ConnectionFactoryMetadata getMetadata() {
          return routed.writerPool.getMetadata();
        }
      };

  private void comesBack() {
    assertThat(cancelled).hasValue(0);
    free.tryEmitEmpty();
    eventually(
        () -> assertThat(routed.writerPool.getMetrics().orElseThrow().idleSize()).isPositive());
    eventually(
        () -> assertThat(routed.writerPool.getMetrics().orElseThrow().acquiredSize()).isZero());
    assertThat(cancelled).hasValue(0);
  }

  @Test
  @DisplayName("PG-20 of a fence whose caller leaves")
  void fence() {
    try (RoutedDatabase db = RoutedDatabase.builder().writer(busy).build()) {
      Disposable fence = db.fence().subscribe();
      eventually(() -> assertThat(asked).hasValue(1));
      fence.dispose();
      comesBack();
    }
  }

  @Test
  @DisplayName("PG-20 of a heartbeat that takes too long")
  void heartbeat() {
    try (RoutedDatabase db =
        RoutedDatabase.builder().writer(busy).heartbeat(Duration.ofMillis(10)).build().start()) {
      db.createHeartbeat().subscribe();
      // the first move was given up: there is a second one
      eventually(() -> assertThat(asked).hasValueGreaterThan(2));
      comesBack();
    }
  }

  @Test
  @DisplayName("PG-1 PG-20 nothing is begun once the database is closed")
  void afterClose() {
    VirtualTimeScheduler time = VirtualTimeScheduler.create();
    try (Logged log = Logged.of(Heartbeat.class)) {
      RoutedDatabase db =
          RoutedDatabase.builder()
              .writer(busy)
              .heartbeat(Duration.ofMillis(10))
              .scheduler(time)
              .build();
      db.close();
      db.start();
      time.advanceTimeBy(Duration.ofSeconds(2));
      assertThat(asked).hasValue(0);
      assertThat(log.warnings()).isEmpty();
    } finally {
      time.dispose();
    }
  }
}
