package dev.timebound.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Records of 1 KiB, written by the Java client with its defaults (batches of 16 KiB, idempotent,
 * acks from all) but that it waits longer for a batch to fill, so that all servers hold the same.
 */
final class FetchLoad {
  static final String TOPIC = "bench";
  static final int RECORD_BYTES = 1024;

  /** Attributes, timestamp, offset, lengths: what a record of this size adds to its value. */
  private static final int OVERHEAD = 12;

  private static final int PENDING = 10_000;

  private FetchLoad() {}

  /** Fills a topic that is there; each partition gets so many records. */
  static void fill(int port, int partitions, int recordsEach) throws Exception {
    int[] records = new int[partitions];
    Arrays.fill(records, recordsEach);
    fill(port, records);
  }

  /**
   * Fills a topic that is there.
   *
   * @param records of partition 0, 1, …
   */
  static void fill(int port, int[] records) throws Exception {
    byte[] value = new byte[RECORD_BYTES - OVERHEAD];
    new Random(7).nextBytes(value);
    Map<String, Object> settings =
        Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG,
            "127.0.0.1:" + port,
            ProducerConfig.LINGER_MS_CONFIG,
            500);
    int most = Arrays.stream(records).max().orElse(0);
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      List<Future<RecordMetadata>> sent = new ArrayList<>(PENDING);
      for (int i = 0; i < most; i++) {
        if (i == 1) {
          // Alone: of several batches sent to a broker that does not lead its new partition yet, a
          // later one may be the first that is taken, and then those before it never are.
          producer.flush();
        }
        for (int partition = 0; partition < records.length; partition++) {
          if (i < records[partition]) {
            sent.add(producer.send(new ProducerRecord<>(TOPIC, partition, null, value)));
          }
        }
        if (sent.size() >= PENDING) {
          settle(sent, sent.size() / 2); // the last ones' batches may still fill
        }
      }
      producer.flush();
      settle(sent, sent.size());
    }
  }

  private static void settle(List<Future<RecordMetadata>> sent, int first) throws Exception {
    for (int i = 0; i < first; i++) {
      sent.get(i).get();
    }
    sent.subList(0, first).clear();
  }
}
