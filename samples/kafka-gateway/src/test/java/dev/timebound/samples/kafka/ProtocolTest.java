package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What goes over the wire, in every version that is served, and what is not taken. */
@NullUnmarked // fields are set before each test
class ProtocolTest extends OverTheWire {
  @Nested
  class Versions {
    @Test
    @DisplayName("ApiVersions of tomorrow is answered in version 0 with what is served")
    void unknownApiVersions() {
      client.sendFrame(
          RawClient.frame(
              new RequestHeaderData()
                  .setRequestApiKey(ApiKeys.API_VERSIONS.id)
                  .setRequestApiVersion((short) 99)
                  .setCorrelationId(7)
                  .setClientId("tomorrow"),
              (short) 2,
              new ApiVersionsRequestData(),
              (short) 3));

      var answer = client.receive();

      assertThat(answer.getInt()).isEqualTo(7);
      ApiVersionsResponseData body =
          new ApiVersionsResponseData(
              new org.apache.kafka.common.protocol.ByteBufferAccessor(answer), (short) 0);
      assertThat(body.errorCode()).isEqualTo(Errors.UNSUPPORTED_VERSION.code());
      assertThat(body.apiKeys().find(ApiKeys.FETCH.id).maxVersion()).isEqualTo((short) 12);
      assertThat(body.apiKeys().find(ApiKeys.PRODUCE.id).minVersion()).isEqualTo((short) 3);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4})
    @DisplayName("ApiVersions tells what is served")
    void apiVersions(int version) {
      ApiVersionsResponseData answer =
          client.ask(
              new ApiVersionsRequestData()
                  .setClientSoftwareName("raw")
                  .setClientSoftwareVersion("1"),
              version);

      assertThat(answer.errorCode()).isZero();
      assertThat(answer.apiKeys()).hasSize(13);
    }

    static Stream<Integer> fetch() {
      return IntStream.rangeClosed(4, 12).boxed();
    }

    @ParameterizedTest
    @MethodSource
    @DisplayName("Fetch brings what was produced, an unknown partition and one out of range")
    void fetch(int version) {
      topic("fetched");
      long base = append("fetched", 0, "a", "b");
      Map<Integer, Long> from = new HashMap<>(Map.of(0, base, 1, 77L, 99, 0L));

      FetchResponseData answer = client.ask(Messages.fetch("fetched", 100, from), version);

      List<FetchResponseData.PartitionData> parts = answer.responses().get(0).partitions();
      assertThat(parts).hasSize(3);
      for (FetchResponseData.PartitionData part : parts) {
        switch (part.partitionIndex()) {
          case 0 -> {
            assertThat(part.errorCode()).isZero();
            assertThat(part.highWatermark()).isEqualTo(base + 2);
            assertThat(part.records().sizeInBytes())
                .isEqualTo(Messages.batch("a", "b").sizeInBytes());
          }
          case 1 -> assertThat(part.errorCode()).isEqualTo(Errors.OFFSET_OUT_OF_RANGE.code());
          default ->
              assertThat(part.errorCode()).isEqualTo(Errors.UNKNOWN_TOPIC_OR_PARTITION.code());
        }
      }
    }

    static Stream<Integer> produce() {
      return IntStream.rangeClosed(3, 9).boxed();
    }

    @ParameterizedTest
    @MethodSource
    @DisplayName("Produce")
    void produce(int version) {
      topic("produced-" + version);
      for (int i = 0; i < 3; i++) {
        ProduceResponseData answer =
            client.ask(Messages.produce("produced-" + version, 1, 1, Messages.batch("x")), version);
        assertThat(Messages.only(answer).errorCode()).isZero();
        assertThat(Messages.only(answer).baseOffset()).isEqualTo(i);
      }
    }

    static Stream<Integer> metadata() {
      return IntStream.rangeClosed(0, 9).boxed();
    }

    @ParameterizedTest
    @MethodSource
    @DisplayName("Metadata makes a topic where it may, and lists all")
    void metadata(int version) {
      MetadataResponseData answer = client.ask(Messages.metadata("made-" + version), version);
      var topic = answer.topics().find("made-" + version);
      assertThat(topic.errorCode()).isZero();
      assertThat(topic.partitions()).hasSize(10);
      assertThat(answer.brokers().iterator().next().port()).isEqualTo(gateway.port());

      MetadataResponseData bad = client.ask(Messages.metadata("no/name"), version);
      assertThat(bad.topics().find("no/name").errorCode())
          .isEqualTo(Errors.INVALID_TOPIC_EXCEPTION.code());

      MetadataResponseData all =
          client.ask(
              version == 0
                  ? new org.apache.kafka.common.message.MetadataRequestData()
                  : new org.apache.kafka.common.message.MetadataRequestData().setTopics(null),
              version);
      assertThat(all.topics().find("made-" + version)).isNotNull();
    }

    @Test
    @DisplayName("Metadata makes no topic where the client does not want it")
    void noTopicMade() {
      MetadataResponseData answer =
          client.ask(Messages.metadata("unwanted").setAllowAutoTopicCreation(false), 9);

      assertThat(answer.topics().find("unwanted").errorCode())
          .isEqualTo(Errors.UNKNOWN_TOPIC_OR_PARTITION.code());
    }

    static Stream<Integer> listOffsets() {
      return IntStream.rangeClosed(1, 7).boxed();
    }

    @ParameterizedTest
    @MethodSource
    @DisplayName(
        "ListOffsets: beginning, end, the latest time, an unknown partition, an unknown time")
    void listOffsets(int version) {
      topic("listed-" + version);
      append("listed-" + version, 0, "a", "b", "c");

      assertThat(list("listed-" + version, 0, -2, version).offset()).isZero();
      assertThat(list("listed-" + version, 0, -1, version).offset()).isEqualTo(3);
      assertThat(list("listed-" + version, 77, -1, version).errorCode())
          .isEqualTo(Errors.UNKNOWN_TOPIC_OR_PARTITION.code());
      assertThat(list("listed-" + version, 0, -3, version).errorCode()).isZero();
      assertThat(list("listed-" + version, 0, -3, version).offset()).isZero();
      assertThat(list("listed-" + version, 0, -4, version).errorCode())
          .isEqualTo(Errors.UNSUPPORTED_VERSION.code());
    }

    private ListOffsetsResponseData.ListOffsetsPartitionResponse list(
        String topic, int partition, long time, int version) {
      ListOffsetsResponseData answer =
          client.ask(
              new ListOffsetsRequestData()
                  .setReplicaId(-1)
                  .setTopics(
                      List.of(
                          new ListOffsetsRequestData.ListOffsetsTopic()
                              .setName(topic)
                              .setPartitions(
                                  List.of(
                                      new ListOffsetsRequestData.ListOffsetsPartition()
                                          .setPartitionIndex(partition)
                                          .setTimestamp(time))))),
              version);
      return answer.topics().get(0).partitions().get(0);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4})
    @DisplayName("InitProducerId: an id of its own each time; transactions are refused")
    void producerIds(int version) {
      InitProducerIdRequestData request = new InitProducerIdRequestData().setTransactionalId(null);
      InitProducerIdResponseData one = client.ask(request, version);
      InitProducerIdResponseData other = client.ask(request, version);
      assertThat(one.errorCode()).isZero();
      assertThat(one.producerId()).isNotEqualTo(other.producerId());

      InitProducerIdResponseData refused =
          client.ask(
              new InitProducerIdRequestData().setTransactionalId("t").setTransactionTimeoutMs(1),
              version);
      assertThat(refused.errorCode())
          .isEqualTo(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code());
    }

    @Test
    @DisplayName("there are no fetch sessions")
    void sessions() {
      topic("sessions");
      FetchRequestData first = Messages.fetch("sessions", 0, Map.of(0, 0L)).setSessionEpoch(0);
      FetchResponseData answer = client.ask(first, 12);
      assertThat(answer.errorCode()).isZero();
      assertThat(answer.sessionId()).isZero();

      FetchResponseData unknown = client.ask(first.duplicate().setSessionId(5), 12);
      assertThat(unknown.errorCode()).isEqualTo(Errors.FETCH_SESSION_ID_NOT_FOUND.code());
      FetchResponseData epoch = client.ask(first.duplicate().setSessionEpoch(3), 12);
      assertThat(epoch.errorCode()).isEqualTo(Errors.INVALID_FETCH_SESSION_EPOCH.code());
    }
  }

  @Nested
  class Refused {
    @Test
    @DisplayName("a request that is not served, or not in this version, ends its connection")
    void notServed() {
      client.sendFrame(new byte[] {0, 19, 0, 5, 0, 0, 0, 1, 0, 0}); // CreateTopics
      assertThat(client.isEnded()).isTrue();

      try (RawClient another = new RawClient(gateway)) {
        another.sendFrame(new byte[] {0, 1, 0, 13, 0, 0, 0, 1, 0, 0, 0}); // Fetch 13
        assertThat(another.isEnded()).isTrue();
      }
      try (RawClient another = new RawClient(gateway)) {
        another.sendFrame(new byte[] {127, 127, 0, 1, 0, 0, 0, 1}); // no such request
        assertThat(another.isEnded()).isTrue();
      }
    }

    @Test
    @DisplayName("a request that cannot be read ends its connection, and no other")
    void malformed() {
      byte[] whole =
          RawClient.frame(
              new RequestHeaderData()
                  .setRequestApiKey(ApiKeys.FETCH.id)
                  .setRequestApiVersion((short) 11)
                  .setClientId("cut"),
              (short) 1,
              Messages.fetch("cut", 100, Map.of(0, 0L)),
              (short) 11);
      for (int length = 0; length < whole.length; length++) {
        try (RawClient another = new RawClient(gateway)) {
          another.sendFrame(java.util.Arrays.copyOf(whole, length));
          assertThat(another.isEnded()).as("cut after %d bytes", length).isTrue();
        }
      }
      topic("still-served");
    }

    @Test
    @DisplayName("a frame beyond the limit, or of a negative length, ends its connection")
    void tooLong() {
      client.sendBytes(new byte[] {0, 16, 0, 1, 0});
      assertThat(client.isEnded()).isTrue();
      try (RawClient another = new RawClient(gateway)) {
        another.sendBytes(new byte[] {-1, 0, 0, 0, 0});
        assertThat(another.isEnded()).isTrue();
      }
    }
  }
}
