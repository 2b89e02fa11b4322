package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** That nothing is left each time is seen by {@link Routed#close()}. */
@Timeout(60)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-16 a subscriber that throws has left: what it held goes back")
class ThrowingSubscriberTest {
  private final Routed routed;
  private final AtomicInteger seen = new AtomicInteger();

  ThrowingSubscriberTest(PostgresReplicaSet servers) {
    this.routed = Routed.on(servers, patient -> patient.cancelGrace(Routed.PATIENT_GRACE));
  }

  @BeforeEach
  void table() {
    routed.warm();
    routed.servers.primary().execute("CREATE TABLE IF NOT EXISTS thrown (n int)");
    routed.servers.primary().execute("TRUNCATE thrown");
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private void throwing(Publisher<String> rows) {
    rows.subscribe(
        new Subscriber<>() {
          @Override
          public void onSubscribe(Subscription s) {
            s.request(Long.MAX_VALUE);
          }

          @Override
          public void onNext(String row) {
            seen.incrementAndGet();
            throw new IllegalStateException("thrown by a subscriber");
          }

          @Override
          public void onError(Throwable e) {}

          @Override
          public void onComplete() {}
        });
    eventually(() -> assertThat(seen).hasPositiveValue());
  }

  @Test
  @DisplayName("PG-16 of a write, which is rolled back, without a deadline")
  void write() {
    throwing(routed.db.write(rows("INSERT INTO thrown SELECT generate_series(1, 9) RETURNING n")));
    eventually(
        () -> assertThat(routed.writerPool.getMetrics().orElseThrow().acquiredSize()).isZero());
    assertThat(routed.servers.primary().value("SELECT count(*) FROM thrown")).isEqualTo("0");
    assertThat(seen).hasValue(1);
  }

  @Test
  @DisplayName("PG-16 of a writeMono, whose answer is the last that comes")
  void writeMono() {
    throwing(routed.db.writeMono(rows("INSERT INTO thrown VALUES (1) RETURNING n")));
    eventually(
        () -> assertThat(routed.writerPool.getMetrics().orElseThrow().acquiredSize()).isZero());
    assertThat(routed.servers.primary().value("SELECT count(*) FROM thrown")).isEqualTo("1");
  }

  @Test
  @DisplayName("PG-15 of a read, long before its deadline")
  void read() {
    throwing(routed.db.read(rows("SELECT n FROM generate_series(1, 9) n")));
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    assertThat(seen).hasValue(1);
    assertThat(routed.meters.find("timebound.pg.release.closed").counters()).isEmpty();
  }

  @Test
  @DisplayName("PG-15 of a read with parameters, and its connection serves on")
  void readWithParameters() {
    String session = routed.read("SELECT pg_backend_pid()").get(0);
    // given back behind its answer: until then the next read would dial another
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    throwing(routed.db.read(rows("SELECT n FROM generate_series(1, $1) n", 9)));
    eventually(() -> assertThat(routed.gauge("timebound.pg.pool.acquired")).isZero());
    assertThat(seen).hasValue(1);
    assertThat(routed.read("SELECT pg_backend_pid()")).containsExactly(session);
  }
}
