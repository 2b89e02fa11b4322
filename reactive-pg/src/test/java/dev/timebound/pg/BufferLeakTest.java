package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Routed.rows;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.util.ResourceLeakDetector;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;

@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-19 a read that is given up under backpressure leaves no buffer behind")
class BufferLeakTest {
  private static final int READS = 40;

  private final ResourceLeakDetector.Level before = ResourceLeakDetector.getLevel();
  private final PostgresReplicaSet servers;

  BufferLeakTest(PostgresReplicaSet servers) {
    this.servers = servers;
    ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
  }

  @AfterEach
  void levelBack() {
    ResourceLeakDetector.setLevel(before);
  }

  @ParameterizedTest(name = "{0}")
  @ValueSource(
      strings = {"a read", "a read with a parameter", "a write", "a plain statement of the writer"})
  @DisplayName("PG-19 the rows that nobody took are let go")
  void givenUp(String which) {
    try (Logged logged = Logged.of(ResourceLeakDetector.class)) {
      // on a busy machine some do not come to their end, and are cut off: those leave nothing too
      try (Routed routed = Routed.on(servers).warm()) {
        for (int i = 0; i < READS; i++) {
          AtomicInteger seen = new AtomicInteger();
          BaseSubscriber<String> reader =
              new BaseSubscriber<>() {
                @Override
                protected void hookOnSubscribe(Subscription subscription) {
                  request(1);
                }

                @Override
                protected void hookOnNext(String value) {
                  seen.incrementAndGet();
                }
              };
          String sql = "SELECT n || repeat('x', 500) FROM generate_series(1, 3000) n";
          switch (which) {
            case "a read" -> routed.db.read(rows(sql)).subscribe(reader);
            case "a write" -> routed.db.write(rows(sql)).subscribe(reader);
            case "a plain statement of the writer" ->
                new Springs(routed).all(sql).subscribe(reader);
            default -> routed.db.read(rows(sql + " WHERE n > $1", 0)).subscribe(reader);
          }
          eventually(() -> assertThat(seen).hasValue(1));
          reader.cancel();
        }
      }
      for (int i = 0; i < 20; i++) {
        System.gc();
        // a detector reports when the next buffer is made
        ByteBuf buffer = PooledByteBufAllocator.DEFAULT.directBuffer(16);
        buffer.release();
      }
      assertThat(logged.errors()).filteredOn(m -> m.contains("LEAK")).isEmpty();
    }
  }
}
