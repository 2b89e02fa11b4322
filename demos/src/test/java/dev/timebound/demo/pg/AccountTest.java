package dev.timebound.demo.pg;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class AccountTest {
  private static final long MS = 1_000_000;

  private final Account account = new Account(2_000 * MS);

  @Test
  @DisplayName("time and counts are of what began after measuring did; errors are of all")
  void measured() {
    account.readBegun(false);
    account.readFailed(false, 0, 9_000 * MS, new IllegalStateException("broken"));
    account.readBegun(true);
    account.readAnswered(true, 0, 4_000 * MS, new Answer(true, 0));
    account.readBegun(true);
    account.readAnswered(true, 0, 10 * MS, new Answer(false, 0));
    account.readLeft(true);
    account.written(true, 0, 30 * MS, 1);
    account.writeFailed(true, 0, 50 * MS, new IllegalStateException("late"));

    Figures figures = account.figures();
    assertThat(figures.reads()).isEqualTo(2);
    assertThat(figures.errors()).isOne();
    assertThat(figures.firstError()).contains("broken");
    assertThat(figures.slowestMillis()).isBetween(4_000L, 4_010L);
    assertThat(figures.overThreeSeconds()).isOne();
    assertThat(figures.byReader()).isOne();
    assertThat(figures.byWriter()).isOne();
    assertThat(figures.left()).isOne();
    assertThat(figures.writes()).isOne();
    assertThat(figures.writeErrors()).isOne();
    assertThat(figures.slowestWriteMillis()).isEqualTo(50);
  }

  @Test
  @DisplayName("an answer is stale that lacks what was committed 2 s before its read began")
  void stale() {
    account.written(true, 0, 1_000 * MS, 1);
    account.written(true, 0, 2_000 * MS, 2);
    account.readAnswered(true, 3_000 * MS, 3_001 * MS, new Answer(true, 0));
    assertThat(account.figures().stale()).as("within 2 s and the slack").isZero();
    account.readAnswered(true, 3_101 * MS, 3_102 * MS, new Answer(true, 0));
    account.readAnswered(true, 3_101 * MS, 3_102 * MS, new Answer(true, 1));
    account.readAnswered(true, 4_101 * MS, 4_102 * MS, new Answer(true, 1));
    assertThat(account.figures().stale()).isEqualTo(2);
  }

  @Test
  @DisplayName("reads are back with the first of 20 in a row that began after the fault's end")
  void back() {
    Back back = new Back(100 * MS);
    for (int i = 0; i < 50; i++) {
      back.ended(99 * MS, 101 * MS, true); // asked before, answered by the thaw itself
    }
    for (int i = 0; i < 19; i++) {
      back.ended(100 * MS, 110 * MS, true);
    }
    back.ended(100 * MS, 111 * MS, false);
    assertThat(back.millis()).isEqualTo(-1);
    for (int i = 0; i < 20; i++) {
      assertThat(back.millis()).isEqualTo(-1);
      back.ended(100 * MS, (120 + i) * MS, true);
    }
    back.ended(100 * MS, 150 * MS, false);
    assertThat(back.millis()).isEqualTo(20);
  }
}
