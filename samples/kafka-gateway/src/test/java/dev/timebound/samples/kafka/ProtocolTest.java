package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
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
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What goes over the wire, in every version that is served, and what is not taken. */
@NullUnmarked // fields are set before each test
class ProtocolTest {
  private static final FaultyLog LOG = new FaultyLog();
  private static KafkaGateway gateway;

  private RawClient client;

  @BeforeAll
  static void start() {
    gateway =
        KafkaGateway.builder(LOG)
            .maxFrameBytes(1024 * 1024)
            .maxBatchBytes(100 * 1024)
            .partitions(10)
            .start()
            .block();
  }

  @AfterAll
  static void stop() {
    gateway.stop().block();
    assertThat(LOG.hanging()).isZero();
    assertThat(LOG.waiting()).isZero();
  }

  @BeforeEach
  void connect() {
    client = new RawClient(gateway);
  }

  @AfterEach
  void disconnect() {
    client.close();
    LOG.heal();
    Until.holds(() -> gateway.connections() == 0);
  }

  private void topic(String name) {
    client.ask(Messages.metadata(name), 9);
  }

  private long append(String topic, int partition, String... values) {
    ProduceResponseData answer =
        client.ask(Messages.produce(topic, partition, -1, Messages.batch(values)), 9);
    assertThat(Messages.only(answer).errorCode()).isZero();
    return Messages.only(answer).baseOffset();
  }

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

  @Nested
  class Batches {
    private Errors produce(org.apache.kafka.common.record.internal.MemoryRecords records) {
      ProduceResponseData answer = client.ask(Messages.produce("batches", 0, -1, records), 9);
      return Errors.forCode(Messages.only(answer).errorCode());
    }

    @BeforeEach
    void topic() {
      ProtocolTest.this.topic("batches");
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
        ProduceResponseData answer = client.ask(request.setTimeoutMs(500), 9);
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
        assertThat(LOG.hanging()).as("appends that go on").isZero();
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
        long began = System.nanoTime();
        ProduceResponseData answer =
            client.ask(
                Messages.produce("batches", 6, -1, Messages.batch("a")).setTimeoutMs(4_000), 9);
        assertThat(Messages.only(answer).errorCode()).isEqualTo(Errors.REQUEST_TIMED_OUT.code());
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(4));
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
}
