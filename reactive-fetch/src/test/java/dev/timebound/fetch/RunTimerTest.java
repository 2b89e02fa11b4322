package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.test.scheduler.VirtualTimeScheduler;

@DisplayName("The timer of a request")
class RunTimerTest {
  private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final RequestClock clock =
      new RequestClock(Deadline.after(Duration.ofMillis(1000), time));
  private final List<Long> steps = new ArrayList<>();
  private final RunTimer timer = new RunTimer(clock, () -> steps.add(clock.now() / MS));

  @AfterEach
  void nothingIsLeft() {
    timer.stop();
    int before = steps.size();
    advance(5_000);
    assertThat(steps).as("steps after it was stopped").hasSize(before);
  }

  private void advance(long ms) {
    time.advanceTimeBy(Duration.ofMillis(ms));
  }

  @Test
  @DisplayName("an instant that is set again, or a later one, costs nothing")
  void onceOnly() {
    timer.set(100 * MS);
    timer.set(1000 * MS);
    long before = time.getScheduledTaskCount();
    for (int i = 0; i < 10; i++) {
      timer.set(100 * MS);
      timer.set(200 * MS);
    }
    assertThat(time.getScheduledTaskCount()).isEqualTo(before);
    advance(150);
    assertThat(steps).containsExactly(100L);
  }

  @Test
  @DisplayName("the deadline set again costs nothing either, and is told at its instant")
  void deadline() {
    timer.set(1000 * MS);
    long before = time.getScheduledTaskCount();
    timer.set(1000 * MS);
    timer.set(Long.MAX_VALUE);
    assertThat(time.getScheduledTaskCount()).isEqualTo(before);
    advance(999);
    assertThat(steps).isEmpty();
    advance(1);
    assertThat(steps).containsExactly(1000L);
  }

  @Test
  @DisplayName("an earlier instant replaces the one before; once it has fired the same counts anew")
  void earlier() {
    timer.set(300 * MS);
    timer.set(100 * MS);
    advance(100);
    assertThat(steps).containsExactly(100L);
    timer.fired();
    timer.set(100 * MS); // of which more became possible at this very instant
    advance(0);
    assertThat(steps).containsExactly(100L, 100L);
    advance(500);
    assertThat(steps).as("the one that was replaced").hasSize(2);
  }

  @Test
  @DisplayName("nothing is set for an instant that never comes")
  void never() {
    long before = time.getScheduledTaskCount();
    timer.set(Long.MAX_VALUE);
    assertThat(time.getScheduledTaskCount()).isEqualTo(before);
    timer.after(50 * MS, () -> steps.add(-1L));
    advance(50);
    assertThat(steps).containsExactly(-1L);
  }
}
