package dev.timebound.samples.kafka;

import dev.timebound.fetch.segments.SegmentStore;
import dev.timebound.samples.kafka.log.MemoryTopicLog;
import dev.timebound.samples.kafka.log.SegmentTopicLog;
import dev.timebound.samples.kafka.log.TopicLog;
import dev.timebound.test.PostgresReplicaSet;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Runs a gateway until the process is told to stop. */
public final class Main {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final Duration OPENING = Duration.ofMinutes(10);
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
    Parts parts = parts(options);
    Flux.fromIterable(options.topics().entrySet())
        .concatMap(topic -> parts.log().create(topic.getKey(), topic.getValue()))
        .then()
        .block(PATIENCE);
    KafkaGateway gateway = options.apply(parts.gateway()).start().block(PATIENCE);
    CountDownLatch stopped = new CountDownLatch(1);
    Runnable stop =
        () -> {
          if (gateway != null) {
            gateway.stop().then(parts.close()).block(PATIENCE);
          }
          stopped.countDown();
        };
    Runtime.getRuntime().addShutdownHook(new Thread(stop, "kafka-gateway-stop"));
    stopped.await();
  }

  /**
   * What is served.
   *
   * @param close once the gateway has stopped
   */
  private record Parts(TopicLog log, KafkaGatewayBuilder gateway, Mono<Void> close) {}

  private static Parts parts(MainArgs options) {
    if (options.postgres() != null) {
      PostgresParts postgres = postgres(options.postgres());
      return new Parts(postgres.log(), postgres.gateway(), postgres.close());
    }
    if (options.segments() != null) {
      SegmentTopicLog log =
          opened(SegmentTopicLog.open(SegmentStore.builder(Path.of(options.segments()))));
      return new Parts(log, KafkaGateway.builder(log), log.close());
    }
    TopicLog log = new MemoryTopicLog();
    return new Parts(log, KafkaGateway.builder(log), Mono.empty());
  }

  private static PostgresParts postgres(String url) {
    String at =
        url.equals(MainArgs.EMBEDDED)
            ? PostgresReplicaSet.builder().standbys(0).start().primary().r2dbcUrl()
            : url;
    PostgresqlConnectionFactory driver =
        new PostgresqlConnectionFactory(
            PostgresqlConnectionFactoryProvider.builder(ConnectionFactoryOptions.parse(at))
                .build());
    return opened(PostgresParts.open(driver, CONNECTIONS, LEASE));
  }

  private static <T> T opened(Mono<T> opening) {
    return Objects.requireNonNull(opening.block(OPENING));
  }
}
