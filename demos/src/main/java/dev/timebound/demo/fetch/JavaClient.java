package dev.timebound.demo.fetch;

import java.time.Duration;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** The Java consumer, with its defaults but for the size of a fetch. */
final class JavaClient implements ReadClient {
  private static final Duration POLL = Duration.ofMillis(100);

  private final String servers;
  private final Account account;
  private final Thread thread = new Thread(this::read, "demo-java-consumer");
  private volatile boolean closing;
  private volatile String failure = "";

  private JavaClient(String servers, Account account) {
    this.servers = servers;
    this.account = account;
  }

  static JavaClient start(String servers, Account account) {
    JavaClient client = new JavaClient(servers, account);
    client.thread.setDaemon(true);
    client.thread.start();
    return client;
  }

  private void read() {
    Map<String, Object> settings =
        Map.of(
            "bootstrap.servers",
            servers,
            "auto.offset.reset",
            "earliest",
            "fetch.max.wait.ms",
            MAX_WAIT_MILLIS,
            "max.partition.fetch.bytes",
            PARTITION_FETCH_BYTES);
    try (KafkaConsumer<String, byte[]> consumer =
        new KafkaConsumer<>(settings, new StringDeserializer(), new ByteArrayDeserializer())) {
      consumer.assign(
          IntStream.range(0, Backlog.PARTITIONS)
              .mapToObj(partition -> new TopicPartition(Backlog.TOPIC, partition))
              .toList());
      while (!closing) {
        for (ConsumerRecord<String, byte[]> record : consumer.poll(POLL)) {
          account.received(record.partition(), Long.parseLong(record.key()));
        }
      }
      consumer.close(CloseOptions.timeout(Duration.ZERO));
    } catch (RuntimeException e) {
      failure = e.toString();
    }
  }

  @Override
  public String failure() {
    return failure;
  }

  @Override
  public void close() throws InterruptedException {
    closing = true;
    thread.join();
  }
}
