package dev.timebound.samples.kafka;

import dev.timebound.samples.kafka.log.MemoryTopicLog;
import dev.timebound.samples.kafka.log.TopicLog;
import dev.timebound.test.PostgresReplicaSet;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Runs a gateway until the process is told to stop. */
public final class Main {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final Duration LEASE = Duration.ofSeconds(9);
  private static final int CONNECTIONS = 16;

  private Main() {}

  /**
   * Blocks until it is stopped.
   *
   * @param args see {@code samples/kafka-gateway/run --help}; exits with 2 where they make no sense
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
    PostgresParts postgres = postgres(options);
    TopicLog log = postgres == null ? new MemoryTopicLog() : postgres.log();
    Flux.fromIterable(options.topics().entrySet())
        .concatMap(topic -> log.create(topic.getKey(), topic.getValue()))
        .then()
        .block(PATIENCE);
    KafkaGatewayBuilder builder = postgres == null ? KafkaGateway.builder(log) : postgres.gateway();
    KafkaGateway gateway = options.apply(builder).start().block(PATIENCE);
    CountDownLatch stopped = new CountDownLatch(1);
    Runnable stop =
        () -> {
          Mono<Void> last = postgres == null ? Mono.empty() : postgres.close();
          if (gateway != null) {
            gateway.stop().then(last).block(PATIENCE);
          }
          stopped.countDown();
        };
    Runtime.getRuntime().addShutdownHook(new Thread(stop, "kafka-gateway-stop"));
    stopped.await();
  }

  private static @Nullable PostgresParts postgres(MainArgs options) {
    String url = options.postgres();
    if (url == null) {
      return null;
    }
    if (url.equals(MainArgs.EMBEDDED)) {
      url = PostgresReplicaSet.builder().standbys(0).start().primary().r2dbcUrl();
    }
    PostgresqlConnectionFactory driver =
        new PostgresqlConnectionFactory(
            PostgresqlConnectionFactoryProvider.builder(ConnectionFactoryOptions.parse(url))
                .build());
    return PostgresParts.open(driver, CONNECTIONS, LEASE).block(PATIENCE);
  }
}
