package dev.timebound.demo.cas;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class BackTest {
  private static final long SECOND = 1_000_000_000L;

  private final Back back = new Back(2, 10 * SECOND);

  @Test
  @DisplayName("is the first of three right reads in a row that began after the fault was over")
  void threeInARow() {
    back.ended(2, 9 * SECOND, 11 * SECOND, true);
    back.ended(2, 10 * SECOND, 11 * SECOND, true);
    back.ended(2, 10 * SECOND, 12 * SECOND, true);
    back.ended(2, 10 * SECOND, 13 * SECOND, false);
    back.ended(2, 10 * SECOND, 14 * SECOND, true);
    back.ended(1, 10 * SECOND, 15 * SECOND, false);
    back.ended(2, 10 * SECOND, 15 * SECOND, true);
    assertThat(back.millis()).isEqualTo(-1);
    back.ended(2, 10 * SECOND, 16 * SECOND, true);
    back.ended(2, 10 * SECOND, 17 * SECOND, false);
    assertThat(back.millis()).isEqualTo(4_000);
  }
}
