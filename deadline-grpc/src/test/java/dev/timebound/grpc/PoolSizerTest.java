package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PoolSizerTest {
  private final PoolSizer sizer = new PoolSizer(4, 200, 1, 25, 2);

  @ParameterizedTest(name = "{0} channels, peak {1}: {2}")
  @DisplayName("BT-2 one resize moves by at most 2 toward the nearest size inside the band")
  @CsvSource({
    // inside the band it stays
    "10, 10, 10",
    "10, 250, 10",
    "10, 100, 10",
    // above it: toward ceil(peak / 25), by 2 at most
    "10, 251, 11",
    "10, 300, 12",
    "10, 10000, 12",
    // below it: toward the peak, by 2 at most, never under the floor
    "10, 9, 9",
    "10, 3, 8",
    "5, 0, 4",
    "4, 0, 4",
    // never over the ceiling
    "199, 100000, 200",
    "200, 100000, 200",
    // and back into the bounds
    "250, 100000, 248",
    "2, 0, 4",
    "1, 0, 3",
  })
  void next(int size, int peak, int expected) {
    assertThat(sizer.next(size, peak)).isEqualTo(expected);
  }

  @ParameterizedTest(name = "{0} channels, peak {1}: {2}")
  @DisplayName("BT-2 the band's lower edge is a setting")
  @CsvSource({"20, 50, 18", "10, 50, 10", "8, 50, 8", "11, 50, 10", "12, 51, 10"})
  void lowerEdge(int size, int peak, int expected) {
    assertThat(new PoolSizer(4, 200, 5, 25, 2).next(size, peak)).isEqualTo(expected);
  }

  @ParameterizedTest(name = "peak {0} settles at {1}")
  @DisplayName("BT-2 repeated resizes under one peak come to rest inside the band")
  @CsvSource({"0, 4", "3, 4", "7, 7", "100, 10", "260, 11", "1000, 40", "5000, 200", "90000, 200"})
  void settles(int peak, int expected) {
    int size = 10;
    for (int i = 0; i < 200; i++) {
      int next = sizer.next(size, peak);
      assertThat(Math.abs(next - size)).isLessThanOrEqualTo(2);
      size = next;
    }
    assertThat(size).isEqualTo(expected);
    assertThat(sizer.next(size, peak)).isEqualTo(size);
  }
}
