package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("BT-42 the window of a stream")
class RequestWindowTest {
  private static final long BUDGET = 256 * 1024;

  /** What is asked for while a consumer takes one message after the other. */
  private static List<Integer> asks(RequestWindow window, int messages, long size) {
    List<Integer> asks = new ArrayList<>();
    long ahead = 0;
    for (int taken = 0; taken <= messages; taken++) {
      if (window.isLow(ahead)) {
        int more = window.refill(ahead, taken == 0 ? 0 : size);
        ahead += more;
        if (more > 0) {
          asks.add(more);
        }
      }
      ahead--;
    }
    return asks;
  }

  @Test
  @DisplayName("BT-42 begins at 2 and doubles up to 32, then asks for half of it at a time")
  void ramp() {
    assertThat(asks(new RequestWindow(BUDGET), 80, 1000)).startsWith(2, 4, 7, 13, 25, 17, 17);
  }

  @Test
  @DisplayName("BT-42 one message of a budget's size or more: one at a time")
  void large() {
    assertThat(asks(new RequestWindow(BUDGET), 10, BUDGET)).startsWith(2, 1, 1, 1);
    assertThat(asks(new RequestWindow(1), 10, 100)).startsWith(2, 1, 1, 1);
  }

  @Test
  @DisplayName("BT-42 sizes that are not told: four at most")
  void unsized() {
    assertThat(asks(new RequestWindow(BUDGET), 20, 0)).startsWith(2, 4, 3, 3);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  @DisplayName("BT-42 whatever the sizes: never more ahead than the budget holds of the largest")
  void bound(long seed) {
    Random random = new Random(seed);
    RequestWindow window = new RequestWindow(BUDGET);
    long ahead = 0;
    for (int i = 0; i < 10_000; i++) {
      long size = 1 + (long) Math.exp(random.nextDouble() * Math.log(1 << 22));
      int more = window.isLow(ahead) ? window.refill(ahead, size) : 0;
      ahead += more;
      if (more > 0 && i > 0) {
        assertThat(ahead).isLessThanOrEqualTo(Math.max(1, Math.min(32, BUDGET / size)));
      }
      ahead -= ahead == 0 ? 0 : random.nextInt((int) ahead + 1);
    }
  }
}
