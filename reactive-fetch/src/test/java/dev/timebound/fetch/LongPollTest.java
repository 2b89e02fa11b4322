package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("When a request that waits goes round again")
class LongPollTest {
  private static final long MAX_WAIT = ms(500);
  private static final long NEVER = Long.MAX_VALUE;

  private final ByteBudget bytes = new ByteBudget(1000, 100);

  private static long ms(long millis) {
    return TimeUnit.MILLISECONDS.toNanos(millis);
  }

  private LongPoll poll(boolean together) {
    Shares shares = new Shares(SharePolicy.HALVING, MAX_WAIT, ms(5500), ms(50));
    return new LongPoll(shares, bytes, together, ms(20));
  }

  private void read(int size) {
    ByteBudget.Reservation reserved = bytes.reserve(size);
    assertThat(reserved).isNotNull();
    assertThat(bytes.accept(reserved, size)).isTrue();
    bytes.release(reserved);
  }

  @Test
  @DisplayName("FE-8 a pause is waited for as long as it lasts, then the next one is twice as long")
  void pauses() {
    LongPoll poll = poll(false);
    assertThat(poll.nextPause(0)).isEqualTo(ms(10));
    assertThat(poll.nextPause(ms(5))).as("the same one").isEqualTo(ms(10));
    assertThat(poll.pauseOver(ms(10) - 1)).isFalse();
    assertThat(poll.pauseOver(ms(10))).isTrue();
    assertThat(poll.pauseOver(ms(10))).as("told once").isFalse();
    assertThat(poll.nextPause(ms(10))).isEqualTo(ms(30));
  }

  @Test
  @DisplayName("FE-8 no pause longer than a quarter of max_wait, and none that ends after it")
  void atMostAQuarter() {
    LongPoll poll = poll(false);
    long now = 0;
    long pause = 0;
    long next;
    while ((next = poll.nextPause(now)) != NEVER) {
      pause = next - now;
      assertThat(pause).isLessThanOrEqualTo(MAX_WAIT / 4);
      now = next;
      assertThat(poll.pauseOver(now)).isTrue();
    }
    assertThat(pause).isEqualTo(MAX_WAIT / 4);
    assertThat(now).isEqualTo(ms(400));
  }

  @Test
  @DisplayName("FE-8 a pause whose timer came after the end of max_wait is not waited for again")
  void lateTimer() {
    LongPoll poll = poll(false);
    assertThat(poll.nextPause(0)).isEqualTo(ms(10));
    assertThat(poll.pauseOver(MAX_WAIT)).isFalse();
    assertThat(poll.nextPause(MAX_WAIT)).as("a time that has passed, for ever").isEqualTo(NEVER);
  }

  @Test
  @DisplayName("FE-9 once min_bytes are in, what runs has the grace, what is held back has none")
  void grace() {
    LongPoll poll = poll(true);
    assertThat(poll.cutAt(0, false)).isEqualTo(NEVER);
    read(99);
    assertThat(poll.isWorthJudging(ms(1))).isFalse();
    poll.judge(ms(1));
    assertThat(poll.cutAt(0, false)).isEqualTo(NEVER);
    read(1);
    assertThat(poll.isWorthJudging(ms(2))).isTrue();
    poll.judge(ms(2));
    assertThat(poll.isWorthJudging(ms(3))).isFalse();
    poll.judge(ms(7));
    assertThat(poll.cutAt(0, false)).as("from the first time").isEqualTo(ms(22));
    assertThat(poll.cutAt(0, true)).isEqualTo(ms(2));
    assertThat(poll.cutAt(ms(10), false)).as("of one that began later").isEqualTo(ms(30));
  }

  @Test
  @DisplayName("FE-9 at the end of max_wait what was read is answered without a grace")
  void endOfWait() {
    LongPoll poll = poll(true);
    read(1);
    poll.judge(MAX_WAIT - 1);
    assertThat(poll.cutAt(0, false)).isEqualTo(NEVER);
    assertThat(poll.isWorthJudging(MAX_WAIT)).isTrue();
    poll.judge(MAX_WAIT);
    assertThat(poll.cutAt(0, false)).isEqualTo(MAX_WAIT);
    assertThat(poll.cutAt(MAX_WAIT, false)).as("of one that begins then").isEqualTo(ms(520));
  }

  @Test
  @DisplayName("FE-24 with nothing read at the end of max_wait the first that comes has the grace")
  void held() {
    LongPoll poll = poll(true);
    poll.judge(MAX_WAIT);
    assertThat(poll.cutAt(0, false)).isEqualTo(NEVER);
    read(1);
    poll.judge(ms(600));
    assertThat(poll.cutAt(0, false)).isEqualTo(ms(620));
  }

  @Test
  @DisplayName("FE-13 a partition at its limit ends the wait")
  void limited() {
    LongPoll poll = poll(true);
    assertThat(poll.waits()).isTrue();
    assertThat(poll.isOver(0)).isFalse();
    poll.limited();
    poll.judge(ms(3));
    assertThat(poll.cutAt(0, false)).isEqualTo(ms(23));
    assertThat(poll.isOver(ms(3))).isTrue();
    assertThat(poll.outcome(ms(3))).isEqualTo("limit");
  }

  @Test
  @DisplayName("FE-14 under parallel each is asked once whatever came, and none in vain")
  void mayBegin() {
    LongPoll poll = poll(true);
    assertThat(poll.mayBegin(MAX_WAIT - 1, true, false)).isTrue();
    assertThat(poll.mayBegin(MAX_WAIT, true, false)).isFalse();
    assertThat(poll.mayBegin(MAX_WAIT, false, true)).as("not asked before").isTrue();
    read(100);
    poll.judge(ms(2));
    assertThat(poll.mayBegin(ms(2), false, false)).isTrue();
    assertThat(poll.mayBegin(ms(2), false, true)).as("held back").isFalse();
    assertThat(poll.mayBegin(ms(2), true, false)).as("asked before").isFalse();
    assertThat(poll(false).mayBegin(MAX_WAIT, true, true)).as("one by one").isTrue();
  }

  @Test
  @DisplayName("FE-8 what ends a request, and what it is called")
  void outcomes() {
    LongPoll poll = poll(false);
    assertThat(poll.isOver(MAX_WAIT - 1)).isFalse();
    assertThat(poll.isOver(MAX_WAIT)).isTrue();
    assertThat(poll.outcome(MAX_WAIT)).isEqualTo("max_wait");
    poll.error();
    assertThat(poll.isOver(0)).isTrue();
    assertThat(poll.outcome(0)).isEqualTo("error");
    assertThat(poll.outcome(MAX_WAIT)).isEqualTo("error");
    read(100);
    assertThat(poll.outcome(MAX_WAIT)).isEqualTo("enough");
    assertThat(poll.waits()).isFalse();
    assertThat(poll(false).isOver(0)).as("min_bytes are in").isTrue();
  }
}
