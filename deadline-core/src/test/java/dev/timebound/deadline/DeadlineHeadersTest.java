package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.DeadlineHeaders.Incoming;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class DeadlineHeadersTest {
  private final ManualScheduler clock = new ManualScheduler();

  private DeadlineHeaders.Builder builder() {
    return DeadlineHeaders.builder().scheduler(clock);
  }

  private static Incoming read(DeadlineHeaders headers, String... namesAndValues) {
    Map<String, String> map = new HashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      map.put(namesAndValues[i], namesAndValues[i + 1]);
    }
    return headers.read(map::get);
  }

  private Duration budget(String... namesAndValues) {
    Incoming in = read(builder().noCeiling().build(), namesAndValues);
    assertThat(in.isRefused()).isFalse();
    assertThat(in.deadline().scheduler()).isSameAs(clock);
    return in.deadline().remaining();
  }

  @Nested
  class Reading {
    @ParameterizedTest
    @CsvSource({
      "grpc-timeout, 800m, PT0.8S",
      "grpc-timeout, 1H, PT1H",
      "grpc-timeout, 2M, PT2M",
      "grpc-timeout, 3S, PT3S",
      "grpc-timeout, 5u, PT0.000005S",
      "grpc-timeout, 99999999n, PT0.099999999S",
      "X-Request-Timeout, 2, PT2S",
      "X-Request-Timeout, 0.75, PT0.75S",
      "X-Request-Timeout, ' 1.5 ', PT1.5S",
      "x-envoy-expected-rq-timeout-ms, 750, PT0.75S",
      "x-envoy-expected-rq-timeout-ms, 0.5, PT0.0005S",
    })
    @DisplayName("DL-7 the three headers, each in its unit")
    void values(String name, String value, Duration expected) {
      assertThat(budget(name, value)).isEqualTo(expected);
    }

    @Test
    @DisplayName("DL-7 where several are there, the shortest counts")
    void shortest() {
      assertThat(
              budget(
                  "grpc-timeout", "800m",
                  "X-Request-Timeout", "0.7",
                  "x-envoy-expected-rq-timeout-ms", "900"))
          .isEqualTo(Duration.ofMillis(700));
    }

    @Test
    @DisplayName("DL-7 zero has passed; what is beyond 100 years is 100 years")
    void edges() {
      Duration century = Duration.ofDays(36_500);
      assertThat(budget("X-Request-Timeout", "0")).isZero();
      assertThat(budget("grpc-timeout", "0n")).isZero();
      assertThat(budget("grpc-timeout", "99999999H")).isEqualTo(century);
      assertThat(budget("X-Request-Timeout", "999999999999999999")).isEqualTo(century);
    }

    @Test
    @DisplayName("DL-7 names and units are a setting")
    void names() {
      DeadlineHeaders headers =
          builder()
              .read("X-Request-Timeout", TimeoutUnit.MILLISECONDS)
              .read("Budget", TimeoutUnit.GRPC)
              .build();
      assertThat(read(headers, "X-Request-Timeout", "750").deadline().remaining())
          .isEqualTo(Duration.ofMillis(750));
      assertThat(read(headers, "Budget", "3S").deadline().remaining())
          .isEqualTo(Duration.ofSeconds(3));
      assertThat(read(headers, "grpc-timeout", "3S").deadline().remaining())
          .isEqualTo(DeadlineHeaders.DEFAULT_BUDGET);
    }
  }

  @Nested
  class Bounds {
    @Test
    @DisplayName("DL-7 without a header the default counts, 30 s if not set")
    void defaultBudget() {
      assertThat(budget()).isEqualTo(Duration.ofSeconds(30));
      assertThat(
              read(builder().defaultBudget(Duration.ofSeconds(2)).build()).deadline().remaining())
          .isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    @DisplayName(
        "DL-7 a caller can shorten and never lengthen: the ceiling holds for the default too")
    void ceiling() {
      DeadlineHeaders headers = builder().ceiling(Duration.ofSeconds(10)).build();
      assertThat(read(headers, "X-Request-Timeout", "11").deadline().remaining())
          .isEqualTo(Duration.ofSeconds(10));
      assertThat(read(headers, "X-Request-Timeout", "9").deadline().remaining())
          .isEqualTo(Duration.ofSeconds(9));
      assertThat(read(headers).deadline().remaining()).isEqualTo(Duration.ofSeconds(10));
      assertThat(read(builder().build(), "grpc-timeout", "2H").deadline().remaining())
          .isEqualTo(DeadlineHeaders.DEFAULT_CEILING);
    }

    @Test
    @DisplayName("DL-7 neither header nor default: the ceiling; without one no deadline")
    void none() {
      assertThat(read(builder().noDefaultBudget().build()).deadline().remaining())
          .isEqualTo(DeadlineHeaders.DEFAULT_CEILING);
      assertThat(read(builder().noDefaultBudget().noCeiling().build()).deadline().isNone())
          .isTrue();
    }
  }

  @Nested
  class Malformed {
    @ParameterizedTest
    @ValueSource(
        strings = {
          "",
          " ",
          "abc",
          "-1",
          "+1",
          "1e9",
          "1,5",
          "1.",
          ".5",
          "1.2.3",
          "0x10",
          "NaN",
          "Infinity",
          "1 2",
          "1, 2",
          "1234567890123456789",
          "1.1234567890",
          "\u0661",
          "1s"
        })
    @DisplayName("DL-7 a malformed value is ignored, as if it were not there")
    void ignored(String value) {
      assertThat(budget("X-Request-Timeout", value)).isEqualTo(DeadlineHeaders.DEFAULT_BUDGET);
      assertThat(budget("X-Request-Timeout", value, "grpc-timeout", "1S"))
          .isEqualTo(Duration.ofSeconds(1));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "1", "S", "123456789S", "1s", "1 S", "-1S", "1.5S", "1h"})
    @DisplayName("DL-7 so is a grpc-timeout")
    void grpc(String value) {
      assertThat(budget("grpc-timeout", value)).isEqualTo(DeadlineHeaders.DEFAULT_BUDGET);
    }

    @Test
    @DisplayName("DL-7 or refuses the request, by setting, and says what was expected")
    void refused() {
      DeadlineHeaders headers = builder().refuseMalformed(true).build();
      Incoming in = read(headers, "X-Request-Timeout", "soon\r\n\"x", "grpc-timeout", "1S");
      assertThat(in.isRefused()).isTrue();
      assertThat(in.refusal())
          .isEqualTo("X-Request-Timeout: \"soon???x\" (expected: seconds, such as 2 or 0.75)");
      assertThat(in.deadline().remaining()).isEqualTo(Duration.ofSeconds(1));
      assertThat(read(headers, "grpc-timeout", "1".repeat(100)).refusal())
          .isEqualTo(
              "grpc-timeout: \""
                  + "1".repeat(32)
                  + "...\" (expected: up to 8 digits and one of H M S m u n)");
      assertThat(read(headers, "grpc-timeout", "1S").isRefused()).isFalse();
    }
  }

  @Nested
  class Writing {
    private final Map<String, String> sent = new HashMap<>();

    private boolean write(DeadlineHeaders headers, Duration left) {
      sent.clear();
      return headers.write(Deadline.after(left, clock), sent::put);
    }

    @Test
    @DisplayName(
        "DL-7 what is left, less a margin of 5 ms, goes on in X-Request-Timeout, in seconds")
    void lessMargin() {
      Deadline deadline = Deadline.after(Duration.ofMillis(805), clock);
      assertThat(builder().build().write(deadline, sent::put)).isTrue();
      assertThat(sent).containsExactly(Map.entry("X-Request-Timeout", "0.8"));
      clock.pass(Duration.ofMillis(300));
      assertThat(builder().build().write(deadline, sent::put)).isTrue();
      assertThat(sent).containsExactly(Map.entry("X-Request-Timeout", "0.5"));
    }

    @ParameterizedTest
    @CsvSource({
      "PT0.099999999S, 99999999n, 0.099, 99",
      "PT0.1S, 100000u, 0.1, 100",
      "PT2.0005S, 2000500u, 2, 2000",
      "PT1M39.999999S, 99999999u, 99.999, 99999",
      "PT100S, 100000m, 100, 100000",
      "PT27H46M40S, 100000S, 100000, 100000000",
      "PT876000H, 52560000M, 3153600000, 3153600000000",
    })
    @DisplayName("DL-7 rounded down, and without exponents")
    void units(Duration left, String grpc, String seconds, String millis) {
      DeadlineHeaders headers =
          builder()
              .margin(Duration.ZERO)
              .send("g", TimeoutUnit.GRPC)
              .send("s", TimeoutUnit.SECONDS)
              .send("m", TimeoutUnit.MILLISECONDS)
              .build();
      assertThat(write(headers, left)).isTrue();
      assertThat(sent).isEqualTo(Map.of("g", grpc, "s", seconds, "m", millis));
    }

    @Test
    @DisplayName("DL-7 where nothing is left for the receiver nothing is written, and it is told")
    void nothingLeft() {
      assertThat(write(builder().build(), Duration.ofMillis(5))).isFalse();
      assertThat(sent).isEmpty();
      assertThat(write(builder().build(), Duration.ofNanos(5_999_999))).isFalse();
      assertThat(write(builder().build(), Duration.ofMillis(6))).isTrue();
      DeadlineHeaders both =
          builder().send("g", TimeoutUnit.GRPC).send("m", TimeoutUnit.MILLISECONDS).build();
      assertThat(write(both, Duration.ofNanos(5_500_000))).isFalse();
      assertThat(sent).isEmpty();
    }

    @Test
    @DisplayName("DL-7 without a deadline nothing is written, and the request may go")
    void none() {
      assertThat(builder().build().write(Deadline.none(), sent::put)).isTrue();
      assertThat(sent).isEmpty();
    }

    @Test
    @DisplayName("DL-7 what is written is read back, less than a millisecond shorter")
    void roundTrip() {
      DeadlineHeaders headers = builder().margin(Duration.ZERO).noCeiling().build();
      for (long nanos = 1_000_000; nanos < 1L << 60; nanos = nanos * 7 + 13) {
        assertThat(write(headers, Duration.ofNanos(nanos))).isTrue();
        long read = headers.read(sent::get).deadline().remainingNanos();
        assertThat(Math.min(nanos, Deadline.MAX_NANOS) - read).isBetween(0L, 999_999L);
      }
    }
  }

  @Test
  @DisplayName("DL-7 settings out of range are named, with the value and what was expected")
  void settings() {
    assertThatThrownBy(() -> builder().defaultBudget(Duration.ZERO))
        .hasMessage("defaultBudget: PT0S (expected: > 0)");
    assertThatThrownBy(() -> builder().ceiling(Duration.ofMillis(-1)))
        .hasMessage("ceiling: PT-0.001S (expected: > 0)");
    assertThatThrownBy(() -> builder().margin(Duration.ofMillis(-1)))
        .hasMessage("margin: PT-0.001S (expected: >= 0)");
    assertThatThrownBy(() -> builder().read(" ", TimeoutUnit.GRPC))
        .hasMessage("read: \" \" (expected: a name)");
    assertThat(DeadlineHeaders.create().read(name -> null).deadline().isExpired()).isFalse();
  }
}
