package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.kafka.common.message.ProduceResponseData;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** A client that speaks the protocol by itself to a gateway over a log that can be made to fail. */
@NullUnmarked // fields are set before each test
abstract class OverTheWire {
  static final FaultyLog LOG = new FaultyLog();
  static KafkaGateway gateway;

  RawClient client;

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
    Until.holds(() -> LOG.hanging() == 0 && LOG.waiting() == 0);
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

  void topic(String name) {
    client.ask(Messages.metadata(name), 9);
  }

  long append(String topic, int partition, String... values) {
    ProduceResponseData answer =
        client.ask(Messages.produce(topic, partition, -1, Messages.batch(values)), 9);
    assertThat(Messages.only(answer).errorCode()).isZero();
    return Messages.only(answer).baseOffset();
  }
}
