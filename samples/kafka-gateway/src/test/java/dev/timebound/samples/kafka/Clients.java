package dev.timebound.samples.kafka;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Unchanged Java clients, with what every test asks of them. */
final class Clients {
  /** Generous: nothing is asserted on how long a thing takes. */
  static final Duration PATIENCE = Duration.ofSeconds(40);

  private Clients() {}

  static KafkaProducer<String, String> producer(KafkaGateway gateway, Object... settings) {
    Map<String, Object> all = new HashMap<>();
    all.put("bootstrap.servers", gateway.bootstrapServers());
    all.putAll(map(settings));
    return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
  }

  static KafkaConsumer<String, String> consumer(KafkaGateway gateway, Object... settings) {
    Map<String, Object> all = new HashMap<>();
    all.put("bootstrap.servers", gateway.bootstrapServers());
    all.put("auto.offset.reset", "earliest");
    all.putAll(map(settings));
    return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
  }

  private static Map<String, Object> map(Object... settings) {
    Map<String, Object> map = new HashMap<>();
    for (int i = 0; i < settings.length; i += 2) {
      map.put((String) settings[i], settings[i + 1]);
    }
    return map;
  }

  /** Writes {@code 0..count-1} to one partition and waits until all are written. */
  static void write(KafkaGateway gateway, String topic, int partition, int count) throws Exception {
    try (KafkaProducer<String, String> producer = producer(gateway)) {
      List<java.util.concurrent.Future<?>> sent = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        sent.add(producer.send(new ProducerRecord<>(topic, partition, null, String.valueOf(i))));
      }
      producer.flush();
      for (java.util.concurrent.Future<?> each : sent) {
        each.get();
      }
    }
  }

  /** Polls until the condition holds; what came, by partition. */
  static Map<Integer, List<String>> read(
      Consumer<String, String> consumer, Map<Integer, List<String>> into, BooleanSupplier until) {
    long ends = System.nanoTime() + PATIENCE.toNanos();
    while (!until.getAsBoolean()) {
      if (System.nanoTime() - ends > 0) {
        throw new AssertionError("still waiting, with " + sizes(into));
      }
      for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
        into.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(record.value());
      }
    }
    return into;
  }

  static int count(Map<Integer, List<String>> records) {
    return records.values().stream().mapToInt(List::size).sum();
  }

  private static Map<Integer, Integer> sizes(Map<Integer, List<String>> records) {
    Map<Integer, Integer> sizes = new HashMap<>();
    records.forEach((partition, values) -> sizes.put(partition, values.size()));
    return sizes;
  }

  static List<TopicPartition> partitions(String topic, int count) {
    List<TopicPartition> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      all.add(new TopicPartition(topic, i));
    }
    return all;
  }

  /** {@code 0..count-1}, as {@link #write} writes them. */
  static List<String> numbers(int count) {
    List<String> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      all.add(String.valueOf(i));
    }
    return all;
  }
}
