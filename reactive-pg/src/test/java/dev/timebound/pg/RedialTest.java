package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class RedialTest {
  private static final Exception CAUSE = new IllegalStateException("refused");

  private final Redial redial = new Redial("east");

  private List<Duration> delays(int rounds) {
    List<Duration> delays = new ArrayList<>();
    for (int i = 0; i < rounds; i++) {
      delays.add(redial.failed(CAUSE, i));
      redial.rang();
    }
    return delays;
  }

  @Test
  @DisplayName("PG-1 retries after 250 ms, 500 ms, 1 s, 2 s …, 10 s at most; again from 250 ms")
  void backoff() {
    assertThat(delays(8))
        .containsExactly(
            Duration.ofMillis(250),
            Duration.ofMillis(500),
            Duration.ofSeconds(1),
            Duration.ofSeconds(2),
            Duration.ofSeconds(4),
            Duration.ofSeconds(8),
            Duration.ofSeconds(10),
            Duration.ofSeconds(10));
    redial.succeeded();
    assertThat(delays(1)).containsExactly(Duration.ofMillis(250));
  }

  @Test
  @DisplayName("PG-1 dials that fail together are one round")
  void oneRound() {
    assertThat(redial.failed(CAUSE, 0)).isEqualTo(Duration.ofMillis(250));
    assertThat(redial.isWaiting()).isTrue();
    assertThat(redial.failed(CAUSE, 0)).isZero();
    redial.rang();
    assertThat(redial.isWaiting()).isFalse();
    assertThat(redial.failed(CAUSE, 0)).isEqualTo(Duration.ofMillis(500));
  }

  @Test
  @DisplayName(
      "PG-2 says once that the reader is down, once a minute that it still is, and its end")
  void logLines() {
    try (Logged log = Logged.of(ReaderPool.class)) {
      for (int second = 0; second < 150; second++) {
        redial.failed(CAUSE, Duration.ofSeconds(second).toNanos());
      }
      assertThat(log.warnings()).hasSize(3);
      assertThat(log.warnings().get(0).getFormattedMessage()).contains("east", "refused");
      redial.succeeded();
      redial.succeeded();
      assertThat(log.infos()).hasSize(1);
    }
  }
}
