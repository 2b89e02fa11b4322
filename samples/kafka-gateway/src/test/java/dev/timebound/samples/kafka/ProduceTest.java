package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** What becomes of the batches that are sent, and when their sender is told. */
@NullUnmarked // fields are set before each test
class ProduceTest extends OverTheWire {
  private Errors produce(org.apache.kafka.common.record.internal.MemoryRecords records) {
    ProduceResponseData answer = client.ask(Messages.produce("batches", 0, -1, records), 9);
    return Errors.forCode(Messages.only(answer).errorCode());
  }

  @BeforeEach
  void topic() {
    topic("batches");
  }

  @Test
  @DisplayName("a batch whose checksum is wrong, of another format, or not alone, is refused")
  void refused() {
    assertThat(produce(Messages.damaged(Messages.batch("a", "b"))))
        .isEqualTo(Errors.CORRUPT_MESSAGE);
    assertThat(produce(Messages.batch((byte) 1, "a"))).isEqualTo(Errors.INVALID_RECORD);
    assertThat(produce(Messages.together(Messages.batch("a"), Messages.batch("b"))))
        .isEqualTo(Errors.INVALID_RECORD);
    assertThat(produce(Messages.together())).isEqualTo(Errors.INVALID_RECORD);
    assertThat(produce(Messages.batchOf(200 * 1024))).isEqualTo(Errors.MESSAGE_TOO_LARGE);
    FetchResponseData nothing = client.ask(Messages.fetch("batches", 0, Map.of(0, 0L)), 12);
    assertThat(Messages.only(nothing).highWatermark()).isZero();
  }

  @Test
  @DisplayName("FE-25 an append that fails, or never ends, is its partition's error alone")
  void oneFails() {
    LOG.failAppends("batches", 8);
    LOG.stallAppends("batches", 7);
    try {
      ProduceRequestData request = Messages.produce("batches", 8, -1, Messages.batch("a"));
      List<ProduceRequestData.PartitionProduceData> partitions =
          request.topicData().iterator().next().partitionData();
      for (int partition : new int[] {7, 9}) {
        partitions.add(
            new ProduceRequestData.PartitionProduceData()
                .setIndex(partition)
                .setRecords(Messages.batch("a")));
      }
      ProduceResponseData answer = client.ask(request.setTimeoutMs(2_000), 9);
      var told = answer.responses().iterator().next().partitionResponses();
      assertThat(told).extracting(each -> each.index()).containsExactly(8, 7, 9);
      assertThat(told)
          .extracting(each -> Errors.forCode(each.errorCode()))
          .containsExactly(Errors.KAFKA_STORAGE_ERROR, Errors.REQUEST_TIMED_OUT, Errors.NONE);
      assertThat(told.get(0).errorMessage()).contains("the disk of batches-8 is full");
      assertThat(told.get(2).baseOffset()).isZero();
      long began = System.nanoTime();
      answer = client.ask(request.setTimeoutMs(60_000), 9);
      assertThat(answer.responses().iterator().next().partitionResponses())
          .extracting(each -> Errors.forCode(each.errorCode()))
          .containsExactly(Errors.KAFKA_STORAGE_ERROR, Errors.REQUEST_TIMED_OUT, Errors.NONE);
      assertThat(Duration.ofNanos(System.nanoTime() - began))
          .as("the one that stalled is only tried")
          .isLessThan(Duration.ofSeconds(30));
      Until.holds(() -> LOG.hanging() == 0); // no append goes on
    } finally {
      LOG.heal();
    }
    ProduceResponseData healed =
        client.ask(Messages.produce("batches", 7, -1, Messages.batch("a")), 9);
    assertThat(Messages.only(healed).errorCode()).isEqualTo(Errors.NONE.code());
  }

  @Test
  @DisplayName("the answer comes before the time after which a client hangs up")
  void inTime() {
    LOG.stallAppends("batches", 6);
    try {
      ProduceResponseData answer =
          client.ask(
              Messages.produce("batches", 6, -1, Messages.batch("a")).setTimeoutMs(4_000), 9);
      assertThat(Messages.only(answer).errorCode()).isEqualTo(Errors.REQUEST_TIMED_OUT.code());
      assertThat(LOG.timeOfStalled())
          .as("all but a quarter, at most")
          .isLessThanOrEqualTo(Duration.ofSeconds(3))
          .isPositive();
    } finally {
      LOG.heal();
    }
  }

  @Test
  @DisplayName("a request that waited for those before it until its time was over writes nothing")
  void waited() {
    LOG.stallAppends("batches", 5);
    try {
      client.send(Messages.produce("batches", 5, -1, Messages.batch("a")).setTimeoutMs(2_000), 9);
      client.send(Messages.produce("batches", 4, -1, Messages.batch("b")).setTimeoutMs(1_000), 9);
      ProduceResponseData stalled = client.answer();
      assertThat(Messages.only(stalled).errorCode()).isEqualTo(Errors.REQUEST_TIMED_OUT.code());
      ProduceResponseData late = client.answer();
      assertThat(Messages.only(late).errorCode()).isEqualTo(Errors.REQUEST_TIMED_OUT.code());
    } finally {
      LOG.heal();
    }
    FetchResponseData nothing = client.ask(Messages.fetch("batches", 0, Map.of(4, 0L)), 12);
    assertThat(Messages.only(nothing).highWatermark()).isZero();
  }

  @Test
  @DisplayName("acks=0 is not answered; an error ends its connection, all that it has")
  void unanswered() {
    client.send(Messages.produce("batches", 5, 0, Messages.batch("a")), 9);
    // the next answer on the wire is the next request's
    assertThat(client.receiveOnlyFor(Messages.fetch("batches", 2000, Map.of(5, 0L)), 12))
        .isEqualTo(1);
    client.send(Messages.produce("batches", 5, 0, Messages.damaged(Messages.batch("b"))), 9);
    assertThat(client.isEnded()).isTrue();
  }

  @Test
  @DisplayName("acks other than none, one and all are refused")
  void acks() {
    ProduceResponseData answer =
        client.ask(Messages.produce("batches", 0, 2, Messages.batch("a")), 9);
    assertThat(Messages.only(answer).errorCode()).isEqualTo(Errors.INVALID_REQUIRED_ACKS.code());
  }

  @Test
  @DisplayName(
      "a batch that is sent again gets its first offset; one too early, or of an old"
          + " instance, is refused")
  void idempotent() {
    assertThat(idempotent(0, 0, "a", "b")).isEqualTo("NONE 0");
    assertThat(idempotent(0, 2, "c")).isEqualTo("NONE 2");
    assertThat(idempotent(0, 0, "a", "b")).isEqualTo("NONE 0");
    assertThat(idempotent(0, 4, "e")).isEqualTo("OUT_OF_ORDER_SEQUENCE_NUMBER -1");
    assertThat(idempotent(0, 3, "d")).isEqualTo("NONE 3");
    assertThat(idempotent(1, 0, "f")).isEqualTo("NONE 4");
    assertThat(idempotent(0, 4, "e")).isEqualTo("INVALID_PRODUCER_EPOCH -1");
  }

  private String idempotent(int epoch, int sequence, String... values) {
    ProduceResponseData answer =
        client.ask(
            Messages.produce("batches", 7, -1, Messages.batch(4711, epoch, sequence, values)), 9);
    var part = Messages.only(answer);
    return Errors.forCode(part.errorCode()) + " " + part.baseOffset();
  }
}
