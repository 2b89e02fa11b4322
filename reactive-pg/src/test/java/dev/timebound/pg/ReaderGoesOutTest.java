package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-11a a reader that goes out between a result's head and its first row")
class ReaderGoesOutTest {
  /** Its head is some kilobytes long, its row short. */
  private static final String WIDE =
      "SELECT pg_is_in_recovery()::text, "
          + IntStream.range(0, 60)
              .mapToObj(i -> "1 AS a_column_with_a_name_that_is_as_long_as_a_name_may_be_" + i)
              .collect(Collectors.joining(", "));

  private final Routed routed;

  ReaderGoesOutTest(PostgresReplicaSet servers) {
    routed = Routed.on(servers);
  }

  @BeforeEach
  void warm() {
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    routed.close();
  }

  private Mono<List<String>> read(Runnable atItsHead) {
    return routed
        .db
        .read(
            c ->
                Flux.from(c.createStatement(WIDE).execute())
                    .concatMap(
                        result -> {
                          atItsHead.run();
                          return result.map((row, metadata) -> String.valueOf(row.get(0)));
                        }))
        .collectList();
  }

  private void outByOthers() {
    routed.reader.fullSpeed();
    for (int i = 0; i < 3; i++) {
      assertThat(routed.read("SELECT 1")).containsExactly("1");
    }
  }

  @Test
  @DisplayName("PG-11a frozen there: the row comes from the writer, once, and no error")
  void frozen() {
    routed.reader.trickle(10_000);
    AtomicInteger heads = new AtomicInteger();
    Mono<List<String>> read =
        read(() -> {
              heads.incrementAndGet();
              routed.reader.freezeAll();
            })
            .cache();
    read.subscribe();
    eventually(() -> assertThat(heads).hasValue(1));
    outByOthers();
    assertThat(read.block(Routed.BOUND)).containsExactly("false");
    eventually(() -> assertThat(routed.routes()).contains("writer reader_quarantined: 1"));
  }

  @Test
  @DisplayName("PG-11 its connection broken there: the row comes from the writer, and no error")
  void broken() {
    routed.reader.trickle(10_000);
    assertThat(read(routed.reader::cut).block(Routed.BOUND)).containsExactly("false");
    eventually(() -> assertThat(routed.routes()).isEqualTo("writer reader_validation_error: 1"));
  }
}
