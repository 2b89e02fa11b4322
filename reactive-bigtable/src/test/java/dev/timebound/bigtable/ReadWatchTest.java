package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.test.scheduler.VirtualTimeScheduler;

@DisplayName("BT-30 HE-10 one timer for all reads")
class ReadWatchTest {
  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();

  @AfterEach
  void dispose() {
    time.dispose();
  }

  private ReadWatch watch(Duration limit) {
    return new ReadWatch(time, limit);
  }

  private void pass(Duration duration) {
    time.advanceTimeBy(duration);
  }

  @Test
  @DisplayName("HE-10 it ticks ten times a limit while a read is watched, and stops with the last")
  void ticks() {
    ReadWatch watch = watch(Duration.ofSeconds(5));
    AtomicInteger one = new AtomicInteger();
    AtomicInteger two = new AtomicInteger();
    ReadWatch.Watched first = one::incrementAndGet;
    ReadWatch.Watched second = two::incrementAndGet;
    assertThat(watch.isTicking()).isFalse();
    watch.add(first);
    pass(Duration.ofSeconds(5));
    assertThat(one).hasValue(10);
    watch.add(second);
    pass(Duration.ofSeconds(1));
    assertThat(one).hasValue(12);
    assertThat(two).hasValue(2);
    watch.remove(first);
    watch.remove(second);
    assertThat(watch.isIdle()).isTrue();
    pass(Duration.ofSeconds(1));
    assertThat(watch.isTicking()).isFalse();
    assertThat(time.getScheduledTaskCount()).isEqualTo(13);
    pass(Duration.ofHours(1));
    assertThat(one).hasValue(12);
    watch.add(first);
    pass(Duration.ofSeconds(5));
    assertThat(one).hasValue(22);
  }

  @Test
  @DisplayName("the tick is 1 ms at least and 1 s at most, whatever the limit")
  void bounds() {
    ReadWatch tiny = watch(Duration.ofNanos(1));
    assertThat(tiny.ticks(Duration.ofNanos(1))).isEqualTo(1);
    assertThat(tiny.ticks(Duration.ofMillis(7))).isEqualTo(7);
    ReadWatch huge = watch(Duration.ofSeconds(Long.MAX_VALUE));
    assertThat(huge.ticks(Duration.ofHours(1))).isEqualTo(3600);
    assertThat(huge.ticks(Duration.ofSeconds(Long.MAX_VALUE))).isEqualTo(Integer.MAX_VALUE);
    AtomicInteger seen = new AtomicInteger();
    huge.add(seen::incrementAndGet);
    pass(Duration.ofSeconds(10));
    assertThat(seen).hasValue(10);
  }

  @Test
  @DisplayName(
      "BT-30 one read whose subscriber throws on the timer's thread takes no limit from others")
  void throwing() {
    ReadWatch watch = watch(Duration.ofSeconds(1));
    AtomicInteger seen = new AtomicInteger();
    ReadWatch.Watched broken =
        () -> {
          throw new IllegalStateException("the subscriber's");
        };
    watch.add(broken);
    watch.add(seen::incrementAndGet);
    pass(Duration.ofSeconds(1));
    assertThat(seen).hasValue(10);
  }

  @Test
  @DisplayName("a limit is rounded up to whole ticks")
  void roundedUp() {
    ReadWatch watch = watch(Duration.ofSeconds(1));
    assertThat(watch.ticks(Duration.ofSeconds(1))).isEqualTo(10);
    assertThat(watch.ticks(Duration.ofMillis(1001))).isEqualTo(11);
  }
}
