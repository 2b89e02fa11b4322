package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.samples.kafka.log.MemoryTopicLog;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.common.message.FindCoordinatorRequestData;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A group whose name no store could keep: its client is told for good, and does not ask again. */
class GroupNamesTest {
  private final KafkaGateway gateway =
      Objects.requireNonNull(KafkaGateway.builder(new MemoryTopicLog()).start().block());

  @AfterEach
  void stop() {
    gateway.stop().block();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "a\0b"})
  @DisplayName("is an invalid group id, whatever is asked of it")
  void invalid(String group) throws Exception {
    short invalid = Errors.INVALID_GROUP_ID.code();
    try (RawClient client = new RawClient(gateway)) {
      FindCoordinatorResponseData found =
          client.ask(new FindCoordinatorRequestData().setKey(group), 2);
      assertThat(found.errorCode()).isEqualTo(invalid);
      OffsetCommitResponseData committed =
          client.ask(
              new OffsetCommitRequestData()
                  .setGroupId(group)
                  .setTopics(
                      List.of(
                          new OffsetCommitRequestTopic()
                              .setName("t")
                              .setPartitions(List.of(new OffsetCommitRequestPartition())))),
              6);
      assertThat(committed.topics().get(0).partitions().get(0).errorCode()).isEqualTo(invalid);
      OffsetFetchResponseData fetched =
          client.ask(new OffsetFetchRequestData().setGroupId(group).setTopics(null), 7);
      assertThat(fetched.errorCode()).isEqualTo(invalid);
    }
  }
}
