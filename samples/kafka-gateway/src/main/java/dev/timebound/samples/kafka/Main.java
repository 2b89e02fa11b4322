package dev.timebound.samples.kafka;

import dev.timebound.samples.kafka.log.MemoryTopicLog;
import dev.timebound.samples.kafka.log.TopicLog;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import reactor.core.publisher.Flux;

/** Runs a gateway until the process is told to stop. */
public final class Main {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private Main() {}

  /**
   * @param args {@code --port}, {@code --host}, {@code --advertise}, {@code --topic}; see {@code
   *     samples/kafka-gateway/run --help}. Exits with 2 where they make no sense
   */
  public static void main(String[] args) throws InterruptedException {
    MainArgs options;
    try {
      options = MainArgs.parse(args);
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage());
      System.exit(2);
      return;
    }
    TopicLog log = new MemoryTopicLog();
    Flux.fromIterable(options.topics().entrySet())
        .concatMap(topic -> log.create(topic.getKey(), topic.getValue()))
        .then()
        .block(PATIENCE);
    KafkaGateway gateway = options.apply(KafkaGateway.builder(log)).start().block(PATIENCE);
    CountDownLatch stopped = new CountDownLatch(1);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  if (gateway != null) {
                    gateway.stop().block(PATIENCE);
                  }
                  stopped.countDown();
                },
                "kafka-gateway-stop"));
    stopped.await();
  }
}
