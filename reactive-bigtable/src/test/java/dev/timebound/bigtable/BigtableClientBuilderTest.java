package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.sun.management.UnixOperatingSystemMXBean;
import dev.timebound.health.HealthEngine;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import java.lang.management.ManagementFactory;
import java.lang.management.OperatingSystemMXBean;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;

@DisplayName("BT-40 settings are checked when they are set")
class BigtableClientBuilderTest {

  private static BigtableClientBuilder builder() {
    return BigtableClient.builder().projectId("p").instanceId("i");
  }

  static Stream<Arguments> refused() {
    Duration none = Duration.ZERO;
    return Stream.of(
        bad("projectId: ' ' (expected: not blank)", b -> b.projectId(" ")),
        bad("instanceId: '' (expected: not blank)", b -> b.instanceId("")),
        bad("gapTimeout: PT0S (expected: > 0)", b -> b.gapTimeout(none)),
        bad("gapTimeout: PT-1S (expected: > 0)", b -> b.gapTimeout(Duration.ofSeconds(-1))),
        bad("maxAttempts: 0 (expected: >= 1)", b -> b.maxAttempts(0)),
        bad("headersTimeout: PT0S (expected: > 0)", b -> b.headersTimeout(none)),
        bad(
            "initialBackoff: PT0.0005S (expected: >= PT0.001S)",
            b -> b.backoff(Duration.ofNanos(500_000), Duration.ofSeconds(1))),
        bad(
            "maxBackoff: PT0.001S (expected: >= initialBackoff PT1S)",
            b -> b.backoff(Duration.ofSeconds(1), Duration.ofMillis(1))),
        bad(
            "keepaliveTime: PT9S (expected: >= PT10S)",
            b -> b.keepalive(Duration.ofSeconds(9), Duration.ofSeconds(1))),
        bad(
            "keepaliveTimeout: PT0S (expected: > 0)",
            b -> b.keepalive(Duration.ofSeconds(10), Duration.ZERO)),
        bad("streamWindowBytes: 0 (expected: 1 to 2147483647)", b -> b.streamWindowBytes(0)),
        bad("streamWindowBytes: -1 (expected: 1 to 2147483647)", b -> b.streamWindowBytes(-1)),
        bad(
            "streamWindowBytes: 2147483648 (expected: 1 to 2147483647)",
            b -> b.streamWindowBytes(1L << 31)),
        bad(
            "maxInboundMessageBytes: 0 (expected: 1 to 2147483647)",
            b -> b.maxInboundMessageBytes(0)),
        bad("endpoint port: 0 (expected: 1 to 65535)", b -> b.endpoint("h", 0)),
        bad("endpoint port: 65536 (expected: 1 to 65535)", b -> b.endpoint("h", 65_536)),
        bad(
            "endpoint host: 'http://h' (expected: a host name or an address)",
            b -> b.endpoint("http://h", 1)));
  }

  private static Arguments bad(String message, UnaryOperator<BigtableClientBuilder> setter) {
    return Arguments.of(message, setter);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  @DisplayName("BT-40 refused, with the setting, its value and what was expected")
  void refused(String message, UnaryOperator<BigtableClientBuilder> setter) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> setter.apply(builder()))
        .withMessage(message);
  }

  @Test
  @DisplayName("a null setting is refused by its name")
  @SuppressWarnings("NullAway")
  void nulls() {
    assertThatNullPointerException()
        .isThrownBy(() -> builder().gapTimeout(null))
        .withMessage("gapTimeout");
    assertThatNullPointerException()
        .isThrownBy(() -> builder().projectId(null))
        .withMessage("projectId");
    assertThatNullPointerException()
        .isThrownBy(() -> builder().backoff(Duration.ofSeconds(1), null))
        .withMessage("maxBackoff");
    assertThatNullPointerException().isThrownBy(() -> builder().pool(null)).withMessage("pool");
    assertThatNullPointerException().isThrownBy(() -> Query.builder(null)).withMessage("tableId");
    assertThatNullPointerException()
        .isThrownBy(() -> Query.builder("t").range(null))
        .withMessage("range");
  }

  @Test
  @DisplayName("HE-1 two clients on one engine: the second pool needs a name of its own")
  void sharedEngine() {
    try (HealthEngine engine = HealthEngine.builder().build()) {
      UnaryOperator<BigtableClientBuilder> shared =
          b ->
              b.health(engine)
                  .endpoint("localhost", 1)
                  .plaintext(true)
                  .pool(pool -> pool.warming(false));
      try (BigtableClient first = shared.apply(builder()).build("")) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> shared.apply(builder()).build(""))
            .withMessageContaining("a second pool needs a name of its own");
        shared.apply(builder()).pool(pool -> pool.name("orders")).build("").close();
        assertThat(first.pool().health()).isSameAs(engine);
      }
    }
  }

  @Test
  @DisplayName("a client that cannot be built leaves no file descriptor")
  void refusedClientsLeaveNothing() {
    OperatingSystemMXBean system = ManagementFactory.getOperatingSystemMXBean();
    assumeTrue(system instanceof UnixOperatingSystemMXBean);
    UnixOperatingSystemMXBean unix = (UnixOperatingSystemMXBean) system;
    long before = unix.getOpenFileDescriptorCount();
    for (int i = 0; i < 50; i++) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> builder().pool(pool -> pool.channels(1, 2, 3)).build("localhost:1"));
    }
    eventually(() -> assertThat(unix.getOpenFileDescriptorCount()).isLessThan(before + 50));
  }

  @Test
  @DisplayName("BT-40 the least and the largest window are taken")
  void windows() {
    builder().streamWindowBytes(1).endpoint("localhost", 1).plaintext(true).build("").close();
    builder()
        .streamWindowBytes(Integer.MAX_VALUE)
        .endpoint("localhost", 1)
        .plaintext(true)
        .build("")
        .close();
  }

  @Test
  @DisplayName("limits of any length are taken")
  void longLimits() {
    Duration forEver = Duration.ofSeconds(Long.MAX_VALUE);
    try (ScriptedBigtable server = ScriptedBigtable.start();
        BigtableClient client =
            builder()
                .gapTimeout(forEver)
                .headersTimeout(forEver)
                .backoff(Duration.ofMillis(1), forEver)
                .pool(pool -> pool.fixedChannels(1))
                .endpoint("localhost", server.port())
                .plaintext(true)
                .build("")) {
      server.readRows().always(Script.start().rows("a").ok());
      assertThat(client.readRow("t", "a").block(Scripted.BOUND)).isNotNull();
      client.pingAndWarm().block(Scripted.BOUND);
    }
  }

  @Test
  @DisplayName("what is missing is named when the client is built")
  void missing() {
    assertThatIllegalStateException()
        .isThrownBy(() -> BigtableClient.builder().instanceId("i").build("localhost:1"))
        .withMessage("projectId: missing (expected: a name)");
    assertThatIllegalStateException()
        .isThrownBy(() -> BigtableClient.builder().projectId("p").build("localhost:1"))
        .withMessage("instanceId: missing (expected: a name)");
  }

  @Nested
  @DisplayName("BIGTABLE_EMULATOR_HOST")
  class EmulatorVariable {
    @Test
    @DisplayName("is where a client without an endpoint goes, in plain text")
    void used() {
      try (ScriptedBigtable server = ScriptedBigtable.start();
          BigtableClient client =
              builder().pool(pool -> pool.fixedChannels(1)).build(server.hostAndPort())) {
        server.readRows().always(Script.start().rows("a").ok());
        assertThat(client.readRow("t", "a").block(Scripted.BOUND)).isNotNull();
      }
    }

    @Test
    @DisplayName("gives way to an endpoint that is set")
    void endpointWins() {
      try (ScriptedBigtable server = ScriptedBigtable.start();
          BigtableClient client =
              builder()
                  .endpoint("127.0.0.1", server.port())
                  .plaintext(true)
                  .pool(pool -> pool.fixedChannels(1))
                  .build("no host at all")) {
        server.readRows().always(Script.start().rows("a").ok());
        assertThat(client.readRow("t", "a").block(Scripted.BOUND)).isNotNull();
      }
    }

    @ParameterizedTest
    @ValueSource(
        strings = {
          "localhost",
          ":8086",
          "localhost:",
          "localhost:0",
          "localhost:65536",
          "localhost:x",
          "http://localhost:8086"
        })
    @DisplayName("is refused where it is no host:port")
    void refused(String value) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> builder().build(value))
          .withMessage("BIGTABLE_EMULATOR_HOST: " + value + " (expected: host:port)");
    }
  }

  @Nested
  @DisplayName("settings that defeat each other")
  class Warnings {
    private List<String> of(UnaryOperator<BigtableClientBuilder> settings) {
      Logger logger = (Logger) LoggerFactory.getLogger(BigtableClient.class);
      ListAppender<ILoggingEvent> appender = new ListAppender<>();
      appender.start();
      logger.addAppender(appender);
      try {
        settings
            .apply(builder().endpoint("localhost", 1).plaintext(true))
            .pool(pool -> pool.warming(false))
            .build("")
            .close();
      } finally {
        logger.detachAppender(appender);
      }
      return appender.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
    }

    @Test
    @DisplayName("headersTimeout not above gapTimeout: warned of once, when the client is built")
    void headersTimeout() {
      assertThat(of(b -> b.headersTimeout(Duration.ofSeconds(5))))
          .singleElement()
          .asString()
          .startsWith("headersTimeout PT5S is not above gapTimeout PT5S");
      assertThat(of(b -> b.headersTimeout(Duration.ofSeconds(6)))).isEmpty();
      assertThat(of(b -> b.headersTimeout(Duration.ofSeconds(1)).maxAttempts(1))).isEmpty();
    }

    @Test
    @DisplayName("no credentials over TLS")
    void noCredentials() {
      assertThat(of(b -> b.plaintext(false)))
          .singleElement()
          .asString()
          .contains("no credentials for localhost");
      assertThat(of(b -> b.plaintext(false).credentials(new TestCredentials()))).isEmpty();
    }

    @Test
    @DisplayName("credentials in plain text")
    void plainText() {
      assertThat(of(b -> b.credentials(new TestCredentials())))
          .singleElement()
          .asString()
          .contains("plain text");
    }
  }
}
