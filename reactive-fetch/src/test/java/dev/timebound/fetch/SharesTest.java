package dev.timebound.fetch;

import static dev.timebound.fetch.ShareRow.TOLERANCE;
import static dev.timebound.fetch.ShareRow.ms;
import static dev.timebound.fetch.ShareRow.nanos;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class SharesTest {
  private static Shares shares(SharePolicy policy, double maxWait) {
    return new Shares(policy, nanos(maxWait), nanos(maxWait + 5000), nanos(50));
  }

  static Stream<List<ShareRow>> cases() {
    return ShareRow.cases().values().stream();
  }

  @Test
  @DisplayName("all lines of the worked numbers are read")
  void all() {
    assertThat(ShareRow.cases().values().stream().mapToInt(List::size).sum()).isEqualTo(40);
  }

  @ParameterizedTest
  @MethodSource("cases")
  @DisplayName("FE-2 FE-3 FE-4 FE-5 halving: share, cap, margin and budget are the worked numbers")
  void workedNumbers(List<ShareRow> rows) {
    long now = 0;
    int left = rows.size();
    for (ShareRow row : rows) {
      Shares shares = shares(SharePolicy.HALVING, row.maxWait());
      assertThat(ms(now)).as("start of %s", row).isCloseTo(row.startsAt(), within(TOLERANCE));
      Share share = shares.begin(now, left--, false);
      assertThat(ms(share.length()))
          .as("share of %s", row)
          .isCloseTo(row.share(), within(TOLERANCE));
      assertThat(ms(share.cap())).as("cap of %s", row).isCloseTo(row.cap(), within(TOLERANCE));
      assertThat(ms(share.margin()))
          .as("margin of %s", row)
          .isCloseTo(row.margin(), within(TOLERANCE));
      long after = now + nanos(row.offsets());
      long budget = Math.max(0, shares.budgetEnd(share, after) - after);
      if (row.budget() >= 0) {
        assertThat(ms(budget)).as("budget of %s", row).isCloseTo(row.budget(), within(TOLERANCE));
      }
      now =
          switch (row.behaviour()) {
            case "full" -> after + budget;
            case "stall" -> share.cap();
            default -> after;
          };
      assertThat(ms(now)).as("end of %s", row).isCloseTo(row.endsAt(), within(TOLERANCE));
    }
  }

  @Nested
  @DisplayName("FE-9 the policies")
  class Policies {
    @Test
    @DisplayName("FE-9 equal: what is left at a turn, by the partitions left")
    void equal() {
      Shares shares = shares(SharePolicy.EQUAL, 1000);
      assertThat(ms(shares.begin(0, 4, false).length())).isEqualTo(1500);
      assertThat(ms(shares.begin(nanos(10), 3, false).length()))
          .isCloseTo(1996.666, within(TOLERANCE));
      assertThat(ms(shares.begin(nanos(500), 1, false).length())).isEqualTo(5500);
    }

    @Test
    @DisplayName("FE-9 parallel: the cap is the deadline, the budget FE-3's")
    void parallel() {
      Shares shares = shares(SharePolicy.PARALLEL, 500);
      Share share = shares.begin(0, 7, false);
      assertThat(ms(share.cap())).isEqualTo(5500);
      assertThat(ms(share.margin())).isEqualTo(1375);
      assertThat(ms(shares.budgetEnd(share, 0))).isEqualTo(500);
      assertThat(ms(shares.budgetEnd(share, nanos(1000)))).isEqualTo(1250);
    }
  }

  @Nested
  @DisplayName("FE-20 one that is held back")
  class HeldBack {
    private final Shares shares = shares(SharePolicy.HALVING, 500);

    @Test
    @DisplayName("FE-20 has until the end of max_wait, read last as it is")
    void untilTheEndOfMaxWait() {
      assertThat(ms(shares.begin(0, 1, true).cap())).isEqualTo(500);
      assertThat(ms(shares.begin(nanos(100), 1, true).cap())).isEqualTo(500);
    }

    @Test
    @DisplayName("FE-20 has half of max_wait at least")
    void halfOfMaxWait() {
      assertThat(ms(shares.begin(nanos(400), 1, true).cap())).isEqualTo(650);
      assertThat(ms(shares.begin(nanos(3000), 1, true).cap())).isEqualTo(3250);
      assertThat(ms(shares.begin(nanos(5400), 1, true).cap())).isEqualTo(5500);
    }

    @Test
    @DisplayName("FE-20 has half of what is left where max_wait lies beyond it")
    void halfOfWhatIsLeft() {
      Shares longWait = shares(SharePolicy.PARALLEL, 20_000);
      assertThat(ms(longWait.begin(0, 1, true).cap())).isEqualTo(12_500);
    }
  }

  @Nested
  @DisplayName("FE-3 edges")
  class Edges {
    @Test
    @DisplayName("FE-3 three quarters of the first share from a max_wait of 3 s on")
    void threeSeconds() {
      for (double wait : new double[] {2999, 3000, 3001, 5000}) {
        Shares shares = shares(SharePolicy.HALVING, wait);
        double budget = ms(shares.budgetEnd(shares.begin(0, 2, false), 0));
        double quarters = (wait + 5000) / 2 * 0.75;
        assertThat(budget).isCloseTo(Math.min(wait, quarters), within(TOLERANCE));
        assertThat(budget < wait).isEqualTo(wait > 3000);
      }
    }

    @Test
    @DisplayName("FE-24 a client that waits for nothing has something read for it all the same")
    void noWait() {
      Shares shares = shares(SharePolicy.HALVING, 0);
      assertThat(ms(shares.budgetEnd(shares.begin(0, 2, false), 0))).isEqualTo(50);
    }

    @Test
    @DisplayName("FE-1 a max_wait beyond the deadline ends with it")
    void beyond() {
      Shares shares = new Shares(SharePolicy.HALVING, nanos(60_000), nanos(25_000), 0);
      assertThat(ms(shares.endOfWait())).isEqualTo(25_000);
      Share share = shares.begin(0, 1, false);
      assertThat(ms(shares.budgetEnd(share, 0))).isEqualTo(18_750);
    }
  }
}
