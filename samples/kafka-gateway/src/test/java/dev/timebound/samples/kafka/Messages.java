package dev.timebound.samples.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;

/** Requests as tests send them. */
final class Messages {
  private Messages() {}

  static MetadataRequestData metadata(String topic) {
    return new MetadataRequestData()
        .setTopics(List.of(new MetadataRequestData.MetadataRequestTopic().setName(topic)));
  }

  /** Of some partitions, each from an offset on. */
  static FetchRequestData fetch(String topic, int maxWait, Map<Integer, Long> from) {
    FetchRequestData.FetchTopic wanted = new FetchRequestData.FetchTopic().setTopic(topic);
    from.forEach(
        (partition, offset) ->
            wanted
                .partitions()
                .add(
                    new FetchRequestData.FetchPartition()
                        .setPartition(partition)
                        .setFetchOffset(offset)
                        .setPartitionMaxBytes(1024 * 1024)));
    List<FetchRequestData.FetchTopic> topics = new ArrayList<>(List.of(wanted));
    return new FetchRequestData()
        .setMaxWaitMs(maxWait)
        .setMinBytes(1)
        .setMaxBytes(8 * 1024 * 1024)
        .setSessionEpoch(-1)
        .setTopics(topics);
  }

  static FetchResponseData.PartitionData only(FetchResponseData answer) {
    return answer.responses().get(0).partitions().get(0);
  }

  static int batches(FetchResponseData.PartitionData data) {
    int count = 0;
    for (var ignored : ((MemoryRecords) data.records()).batches()) {
      count++;
    }
    return count;
  }

  static ProduceRequestData produce(String topic, int partition, int acks, MemoryRecords records) {
    ProduceRequestData.TopicProduceDataCollection topics =
        new ProduceRequestData.TopicProduceDataCollection();
    topics.add(
        new ProduceRequestData.TopicProduceData()
            .setName(topic)
            .setPartitionData(
                new ArrayList<>(
                    List.of(
                        new ProduceRequestData.PartitionProduceData()
                            .setIndex(partition)
                            .setRecords(records)))));
    return new ProduceRequestData().setAcks((short) acks).setTimeoutMs(5000).setTopicData(topics);
  }

  static ProduceResponseData.PartitionProduceResponse only(ProduceResponseData answer) {
    return answer.responses().iterator().next().partitionResponses().get(0);
  }

  static MemoryRecords batch(String... values) {
    return MemoryRecords.withRecords(Compression.NONE, records(values));
  }

  static MemoryRecords batch(byte format, String... values) {
    return MemoryRecords.withRecords(format, Compression.NONE, records(values));
  }

  /** One record of many bytes. */
  static MemoryRecords batchOf(int bytes) {
    return MemoryRecords.withRecords(
        Compression.NONE, new SimpleRecord(System.currentTimeMillis(), new byte[bytes]));
  }

  static MemoryRecords batch(long producer, int epoch, int sequence, String... values) {
    return MemoryRecords.withIdempotentRecords(
        Compression.NONE, producer, (short) epoch, sequence, records(values));
  }

  /** The same with one bit of its records turned. */
  static MemoryRecords damaged(MemoryRecords records) {
    ByteBuffer bytes = ByteBuffer.allocate(records.sizeInBytes());
    bytes.put(records.buffer().duplicate()).flip();
    int last = bytes.limit() - 2;
    bytes.put(last, (byte) (bytes.get(last) ^ 1));
    return MemoryRecords.readableRecords(bytes);
  }

  static MemoryRecords together(MemoryRecords... all) {
    ByteBuffer bytes = ByteBuffer.allocate(1024 * 1024);
    for (MemoryRecords records : all) {
      bytes.put(records.buffer().duplicate());
    }
    return MemoryRecords.readableRecords(bytes.flip());
  }

  private static SimpleRecord[] records(String... values) {
    return List.of(values).stream()
        .map(value -> new SimpleRecord(System.currentTimeMillis(), value.getBytes()))
        .toArray(SimpleRecord[]::new);
  }
}
