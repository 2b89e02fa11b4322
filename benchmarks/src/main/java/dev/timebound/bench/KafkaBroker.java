package dev.timebound.bench;

import java.util.List;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;

/**
 * A real Kafka broker in this JVM: one node that is its own controller (KRaft), with its defaults,
 * its log in a directory of its own that is deleted when it is closed.
 */
final class KafkaBroker implements AutoCloseable {
  private final KafkaClusterTestKit kit;

  private KafkaBroker(KafkaClusterTestKit kit) {
    this.kit = kit;
  }

  /** Starts one with one topic. */
  static KafkaBroker start(String topic, int partitions) throws Exception {
    KafkaClusterTestKit kit =
        new KafkaClusterTestKit.Builder(
                new TestKitNodes.Builder()
                    .setCombined(true)
                    .setNumBrokerNodes(1)
                    .setNumControllerNodes(1)
                    .build())
            .build();
    KafkaBroker broker = new KafkaBroker(kit);
    try {
      kit.format();
      kit.startup();
      kit.waitForReadyBrokers();
      try (Admin admin = kit.admin()) {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
      }
    } catch (Exception e) {
      broker.close();
      throw e;
    }
    return broker;
  }

  int port() {
    String servers = kit.bootstrapServers();
    return Integer.parseInt(servers.substring(servers.lastIndexOf(':') + 1));
  }

  @Override
  public void close() throws Exception {
    kit.close();
  }
}
