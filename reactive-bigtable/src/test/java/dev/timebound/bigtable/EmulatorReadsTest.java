package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.timebound.test.BigtableEmulator;
import dev.timebound.test.BigtableTable;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.test.StepVerifier;

/** What a user does, on the real emulator. */
class EmulatorReadsTest {
  private static final Duration BOUND = Duration.ofSeconds(30);
  private static final int ROWS = 1000;
  private static final BigtableTable TABLE =
      BigtableEmulator.shared().createFreshTable("reads", "f", "g");

  private static final BigtableClient CLIENT =
      BigtableClient.builder()
          .projectId("timebound")
          .instanceId("test")
          .pool(pool -> pool.fixedChannels(2))
          .build(BigtableEmulator.shared().hostAndPort());

  @BeforeAll
  static void load() {
    TABLE.load(
        IntStream.range(0, ROWS)
            .mapToObj(
                i ->
                    BigtableTable.entry(
                        key(i),
                        BigtableTable.cell("f", "q", ByteString.copyFromUtf8("value " + i)),
                        BigtableTable.cell("g", "r", ByteString.copyFromUtf8("other " + i)))));
  }

  @AfterAll
  static void close() {
    CLIENT.close();
    Eventually.eventually(() -> assertThat(CLIENT.pool().isTerminated()).isTrue());
    assertThat(CLIENT.pool().openChannels()).isZero();
  }

  @AfterEach
  void nothingIsLeft() {
    Eventually.eventually(() -> assertThat(CLIENT.isIdle()).isTrue());
  }

  private static String key(int i) {
    return String.format("row-%05d", i);
  }

  private static List<String> keys(Flux<Row> rows) {
    List<Row> all = rows.collectList().block(BOUND);
    assertThat(all).isNotNull();
    return all.stream().map(row -> row.key().toStringUtf8()).toList();
  }

  private static List<String> expected(IntStream numbers) {
    return numbers.mapToObj(EmulatorReadsTest::key).toList();
  }

  private static Query.Builder query() {
    return Query.builder(TABLE.id());
  }

  @Test
  void oneRow() {
    Row row = CLIENT.readRow(TABLE.id(), key(7)).block(BOUND);
    assertThat(row).isNotNull();
    assertThat(row.cells()).hasSize(2);
    // The emulator keeps families in no particular order.
    assertThat(row.cells().stream().map(cell -> cell.value().toStringUtf8()))
        .containsExactlyInAnyOrder("value 7", "other 7");
  }

  @Test
  void noRow() {
    StepVerifier.create(CLIENT.readRow(TABLE.id(), "nowhere")).verifyComplete();
  }

  @Test
  void wholeTable() {
    assertThat(keys(CLIENT.readRows(query().build())))
        .isEqualTo(expected(IntStream.range(0, ROWS)));
  }

  @Test
  void reversedWithLimit() {
    assertThat(keys(CLIENT.readRows(query().reversed(true).limit(3).build())))
        .containsExactly(key(999), key(998), key(997));
  }

  @Test
  void keysRangesAndPrefix() {
    assertThat(
            keys(
                CLIENT.readRows(
                    query().key(key(3)).range(key(10), key(12)).prefix("row-0099").build())))
        .isEqualTo(expected(IntStream.concat(IntStream.of(3, 10, 11), IntStream.range(990, 1000))));
  }

  @Test
  void filter() {
    Row row =
        CLIENT
            .readRows(query().key(key(7)).filter(Filters.familyRegex("g")).build())
            .single()
            .block(BOUND);
    assertThat(row).isNotNull();
    assertThat(row.cells()).hasSize(1);
  }

  @Test
  @DisplayName("BT-37 a consumer that asks for a few rows at a time gets them all, in order")
  void slowConsumer() {
    StepVerifier.Step<Row> step = StepVerifier.create(CLIENT.readRows(query().build()), 0);
    for (int i = 0; i < ROWS; i += 100) {
      step = step.thenRequest(100).expectNextCount(100);
    }
    step.verifyComplete();
  }

  @Test
  void cancelEndsTheCall() {
    assertThat(keys(CLIENT.readRows(query().build()).take(5)))
        .isEqualTo(expected(IntStream.range(0, 5)));
  }

  @Test
  @DisplayName("BT-34 what a retry cannot mend is told at once, as the server's status")
  void unknownTable() {
    StepVerifier.create(CLIENT.readRow("no-such-table", "k"))
        .expectErrorSatisfies(
            e ->
                assertThat(((StatusRuntimeException) e).getStatus().getCode())
                    .isEqualTo(Status.Code.NOT_FOUND))
        .verify(BOUND);
  }

  @Test
  void samplesAndPing() {
    CLIENT.pingAndWarm().block(BOUND);
    List<KeyOffset> samples = CLIENT.sampleRowKeys(TABLE.id()).collectList().block(BOUND);
    assertThat(samples).isNotNull();
  }

  @Test
  @DisplayName("BT-45 a row of 5 MB is read")
  void largeRow() {
    ByteString value = ByteString.copyFrom(new byte[5_000_000]);
    BigtableTable large = BigtableEmulator.shared().createFreshTable("large", "f");
    large.load(Stream.of(BigtableTable.entry("big", BigtableTable.cell("f", "q", value))));
    Row row = CLIENT.readRow(large.id(), "big").block(BOUND);
    assertThat(row).isNotNull();
    assertThat(row.cells().get(0).value()).isEqualTo(value);
  }
}
