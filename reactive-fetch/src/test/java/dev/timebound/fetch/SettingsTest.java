package dev.timebound.fetch;

import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.health.HealthEngine;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

@DisplayName("Settings, requests and batches")
class SettingsTest {
  private static PartitionFetcherBuilder builder() {
    return PartitionFetcher.builder(new MemoryStore());
  }

  private static Arguments says(String message, ThrowingCallable call) {
    return Arguments.of(message, call);
  }

  static Stream<Arguments> refused() {
    Duration negative = Duration.ofMillis(-1);
    return Stream.of(
        says("name: ' ' (expected: not blank)", () -> builder().name(" ")),
        says("extraTime: PT-0.001S (expected: >= 0)", () -> builder().extraTime(negative)),
        says(
            "maxReadDeadline: PT0S (expected: > 0)",
            () -> builder().maxReadDeadline(Duration.ZERO)),
        says(
            "listOffsetsDeadline: PT0S (expected: > 0)",
            () -> builder().listOffsetsDeadline(Duration.ZERO)),
        says("leastBudget: PT-0.001S (expected: >= 0)", () -> builder().leastBudget(negative)),
        says("grace: PT-0.001S (expected: >= 0)", () -> builder().grace(negative)),
        says("concurrency: 0 (expected: >= 1)", () -> builder().concurrency(0)),
        says("maxConcurrency: 0 (expected: >= 1)", () -> builder().maxConcurrency(0)),
        says("slowAfter: PT0S (expected: > 0)", () -> builder().slowAfter(Duration.ZERO)),
        says("penalty: PT0S (expected: > 0)", () -> builder().penalty(Duration.ZERO)),
        says("maxPenalised: 0 (expected: >= 1)", () -> builder().maxPenalised(0)),
        says("warnEvery: PT0S (expected: > 0)", () -> builder().warnEvery(Duration.ZERO)),
        says("backgroundTime: PT0S (expected: > 0)", () -> builder().backgroundTime(Duration.ZERO)),
        says("backgroundBytes: 0 (expected: >= 1)", () -> builder().backgroundBytes(0)),
        says(
            "penalty: PT876024H (expected: at most PT876000H)",
            () -> builder().penalty(Duration.ofDays(36_501))),
        says("maxWait: PT-0.001S (expected: >= 0)", () -> FetchRequest.builder().maxWait(negative)),
        says("minBytes: -1 (expected: >= 0)", () -> FetchRequest.builder().minBytes(-1)),
        says("maxBytes: -1 (expected: >= 0)", () -> FetchRequest.builder().maxBytes(-1)),
        says(
            "partitionMaxBytes: -1 (expected: >= 0)",
            () -> FetchRequest.builder().partition(partition(0), 0, -1)),
        says(
            "bytes: none (expected: one at least)",
            () -> new RecordBatch(ByteBuffer.allocate(0), 0, 0, 1, -1)),
        says("partitions: [] (expected: at least one)", () -> FetchRequest.builder().build()),
        says(
            "partitions: orders-0 twice (expected: each once)",
            () -> FetchRequest.builder().partition(partition(0), 0).partition(partition(0), 1)),
        says("topic: ' ' (expected: not blank)", () -> new TopicPartition(" ", 0)),
        says("partition: -1 (expected: >= 0)", () -> new TopicPartition("a", -1)),
        says("baseOffset: -1 (expected: >= 0)", () -> batch(-1, 0, 1)),
        says("lastOffset: 1 (expected: >= baseOffset 2)", () -> batch(2, 1, 1)),
        says("recordCount: 0 (expected: >= 1)", () -> batch(0, 0, 0)),
        says("logStart: -1 (expected: >= 0)", () -> Offsets.of(-1, 0, 0)),
        says("highWatermark: 1 (expected: >= logStart 2)", () -> Offsets.of(2, 1, 1)),
        says("lastStable: 3 (expected: <= highWatermark 2)", () -> Offsets.of(0, 2, 3)),
        says(
            "maxBytes: -1 (expected: >= 0)",
            () -> new ReadSpec(0, -1, false, Isolation.READ_COMMITTED)));
  }

  private static RecordBatch batch(long base, long last, int records) {
    return new RecordBatch(ByteBuffer.allocate(1), base, last, records, -1);
  }

  @ParameterizedTest
  @MethodSource
  @DisplayName("are refused at once, by name, value and expectation")
  void refused(String message, ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  @DisplayName("two fetchers on one engine need names of their own; a closed one's is free")
  void names() {
    try (HealthEngine engine = HealthEngine.builder().build()) {
      PartitionFetcher first = builder().health(engine).build();
      assertThatThrownBy(() -> builder().health(engine).build())
          .isInstanceOf(IllegalArgumentException.class);
      first.close();
      builder().health(engine).build().close();
      assertThat(engine.isDisposed()).as("the engine is its owner's").isFalse();
    }
  }

  @Test
  @DisplayName("a batch's bytes are neither copied nor changed by who reads them")
  void bytes() {
    ByteBuffer bytes = ByteBuffer.allocateDirect(8).position(2);
    RecordBatch batch = new RecordBatch(bytes, 0, 4, 5, 9);
    assertThat(batch.sizeInBytes()).isEqualTo(6);
    ByteBuffer view = batch.bytes();
    assertThat(view.isReadOnly()).isTrue();
    view.get();
    assertThat(batch.bytes().remaining()).isEqualTo(6);
    bytes.put(2, (byte) 7);
    assertThat(batch.bytes().get(2)).as("the same memory").isEqualTo((byte) 7);
    assertThat(batch.nextOffset()).isEqualTo(5);
    assertThat(batch.withAborted(List.of(new AbortedTransaction(1, 0))).aborted()).hasSize(1);
    assertThat(batch).hasToString("RecordBatch[0..4, 6 bytes]");
  }

  @Test
  @DisplayName("codes are the Kafka protocol's")
  void codes() {
    assertThat(ErrorCode.NONE.code()).isZero();
    assertThat(ErrorCode.OFFSET_OUT_OF_RANGE.code()).isEqualTo((short) 1);
    assertThat(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.code()).isEqualTo((short) 3);
    assertThat(ErrorCode.REQUEST_TIMED_OUT.code()).isEqualTo((short) 7);
    assertThat(ErrorCode.STORAGE_ERROR.code()).isEqualTo((short) 56);
    assertThat(ErrorCode.OFFSET_OUT_OF_RANGE.isRetriable()).isFalse();
  }

  @Test
  @DisplayName("a response is asked by partition, of those in the request only")
  void response() {
    FetchResponse response =
        new FetchResponse(
            List.of(PartitionData.failed(partition(0), ErrorCode.STORAGE_ERROR, null)));
    assertThat(response.partition(partition(0)).error()).isEqualTo(ErrorCode.STORAGE_ERROR);
    assertThatThrownBy(() -> response.partition(partition(1)))
        .hasMessage("partition: orders-1 (expected: one of the request)");
  }
}
