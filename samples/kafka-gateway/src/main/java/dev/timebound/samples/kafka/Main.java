package dev.timebound.samples.kafka;

import dev.timebound.fetch.segments.SegmentStore;
import dev.timebound.samples.kafka.group.FileOffsetStore;
import dev.timebound.samples.kafka.log.MemoryTopicLog;
import dev.timebound.samples.kafka.log.SegmentTopicLog;
import dev.timebound.samples.kafka.log.TopicLog;
import dev.timebound.test.PostgresReplicaSet;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.io.PrintStream;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import reactor.core.Exceptions;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Runs a gateway until the process is told to stop. */
public final class Main {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final Duration OPENING = Duration.ofMinutes(10);
  private static final Duration LEASE = Duration.ofSeconds(9);
  private static final int CONNECTIONS = 16;

  /** Within the directory of segment files, which this process alone has open. */
  private static final String GROUPS = "groups";

  private Main() {}

  /**
   * Blocks until it is stopped.
   *
   * @param args see {@code samples/kafka-gateway/run --help}; where it cannot start it exits with 1
   */
  public static void main(String[] args) throws InterruptedException {
    int exit = run(args, System.err);
    if (exit != 0) {
      System.exit(exit);
    }
  }

  /**
   * Returns once it was stopped, or could not start: then with a line that says why.
   *
   * @return the process's exit code
   */
  static int run(String[] args, PrintStream err) throws InterruptedException {
    Runnable stop;
    try {
      stop = started(MainArgs.parse(args));
    } catch (RuntimeException e) {
      err.println(reason(e));
      return 1;
    }
    CountDownLatch stopped = new CountDownLatch(1);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  stop.run();
                  stopped.countDown();
                },
                "kafka-gateway-stop"));
    stopped.await();
    return 0;
  }

  /** What stops it again. */
  private static Runnable started(MainArgs options) {
    Parts parts = parts(options);
    try {
      Flux.fromIterable(options.topics().entrySet())
          .concatMap(topic -> parts.log().create(topic.getKey(), topic.getValue()))
          .then()
          .block(PATIENCE);
      KafkaGateway gateway = Objects.requireNonNull(options.apply(parts.gateway()).start().block());
      return () -> gateway.stop().then(parts.close()).block(PATIENCE);
    } catch (RuntimeException e) {
      parts.close().onErrorComplete().block(PATIENCE);
      throw e;
    }
  }

  /** In one line: what was to be done, and what came of it where that is told apart. */
  private static String reason(Throwable thrown) {
    Throwable outer = Exceptions.unwrap(thrown);
    Throwable inner = outer;
    while (inner.getCause() != null) {
      inner = inner.getCause();
    }
    String what = text(outer);
    String why = text(inner);
    return (what.contains(why) ? what : what + ": " + why).replaceAll("\\s*\\R\\s*", " ");
  }

  private static String text(Throwable thrown) {
    String message = thrown.getMessage();
    String kind = thrown.getClass().getSimpleName();
    if (message == null || message.isBlank()) {
      return kind;
    }
    return thrown instanceof FileSystemException ? kind + ": " + message : message; // a file alone
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
      Path directory = Path.of(options.segments());
      SegmentTopicLog log = opened(SegmentTopicLog.open(SegmentStore.builder(directory)));
      FileOffsetStore offsets = new FileOffsetStore(directory.resolve(GROUPS));
      return new Parts(
          log, KafkaGateway.builder(log).offsets(offsets), offsets.close().then(log.close()));
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
