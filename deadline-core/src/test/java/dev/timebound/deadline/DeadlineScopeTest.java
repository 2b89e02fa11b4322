package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.context.ContextRegistry;
import io.micrometer.context.ContextSnapshotFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

@Timeout(60)
class DeadlineScopeTest {
  private final Deadline minute = Deadline.after(Duration.ofMinutes(1));
  private final Deadline hour = Deadline.after(Duration.ofHours(1));

  @AfterEach
  void nothingLeft() {
    assertThat(DeadlineScope.current().isNone()).isTrue();
  }

  @Nested
  class OnTheThread {
    @Test
    @DisplayName("DL-7 a scope gives the thread a deadline, and the one before back")
    void nested() {
      try (DeadlineScope outer = DeadlineScope.open(hour)) {
        assertThat(DeadlineScope.current()).isSameAs(hour);
        Deadline shorter = hour.within(Duration.ofMinutes(1));
        try (DeadlineScope inner = DeadlineScope.open(shorter)) {
          assertThat(DeadlineScope.current()).isSameAs(shorter);
        }
        assertThat(DeadlineScope.current()).isSameAs(hour);
      }
      assertThat(DeadlineScope.current().isNone()).isTrue();
    }

    @Test
    @DisplayName("DL-7 to close a scope again does nothing")
    void closedAgain() {
      DeadlineScope outer = DeadlineScope.open(hour);
      DeadlineScope inner = DeadlineScope.open(minute);
      inner.close();
      outer.close();
      inner.close();
      assertThat(DeadlineScope.current().isNone()).isTrue();
    }

    @Test
    @DisplayName("DL-7 an inner scope shortens and never lengthens")
    void lesser() {
      try (DeadlineScope outer = DeadlineScope.open(minute);
          DeadlineScope inner = DeadlineScope.open(hour);
          DeadlineScope none = DeadlineScope.open(Deadline.none())) {
        assertThat(DeadlineScope.current()).isSameAs(minute);
      }
    }
  }

  @Nested
  class Propagated {
    @Test
    @DisplayName("DL-7 contextCapture takes the thread's deadline into the Context")
    void captured() {
      Mono<Deadline> read = Deadlines.defer(Mono::just);
      try (DeadlineScope scope = DeadlineScope.open(minute)) {
        assertThat(read.contextCapture().block()).isSameAs(minute);
      }
      assertThat(read.contextCapture().block()).isSameAs(Deadline.none());
    }

    @Test
    @DisplayName("DL-7 a bound upstream of contextCapture takes the lesser")
    void lesser() {
      Mono<Deadline> read = Deadlines.defer(Mono::just);
      try (DeadlineScope scope = DeadlineScope.open(minute)) {
        assertThat(read.transform(Deadlines.within(Duration.ofHours(1))).contextCapture().block())
            .isSameAs(minute);
        Deadline shorter =
            read.transform(Deadlines.within(Duration.ofSeconds(1))).contextCapture().block();
        assertThat(shorter).isNotNull();
        assertThat(shorter.remaining()).isLessThanOrEqualTo(Duration.ofSeconds(1));
      }
    }

    @Test
    @DisplayName("DL-7 and back: a handle on another thread finds the Context's deadline on it")
    void restored() {
      Scheduler other = Schedulers.newSingle("other");
      List<Deadline> seen = new ArrayList<>();
      try (DeadlineScope scope = DeadlineScope.open(minute)) {
        Mono.just(1)
            .publishOn(other)
            .doOnNext(i -> seen.add(DeadlineScope.current()))
            .<Integer>handle(
                (i, sink) -> {
                  seen.add(DeadlineScope.current());
                  sink.next(i);
                })
            .doOnNext(i -> seen.add(DeadlineScope.current()))
            .contextCapture()
            .block();
        assertThat(DeadlineScope.current()).isSameAs(minute);
      } finally {
        other.dispose();
      }
      assertThat(seen.get(0).isNone()).isTrue();
      assertThat(seen.get(1)).isSameAs(minute);
    }

    @Test
    @DisplayName("DL-7 a snapshot sets it, clears it, and gives the one before back")
    void snapshot() {
      ContextSnapshotFactory factory = ContextSnapshotFactory.builder().clearMissing(true).build();
      var context = Deadlines.put(reactor.util.context.Context.empty(), hour);
      try (DeadlineScope scope = DeadlineScope.open(minute)) {
        try (var set = factory.setThreadLocalsFrom(context)) {
          assertThat(DeadlineScope.current()).isSameAs(hour);
        }
        assertThat(DeadlineScope.current()).isSameAs(minute);
        try (var cleared = factory.setThreadLocalsFrom(reactor.util.context.Context.empty())) {
          assertThat(DeadlineScope.current().isNone()).isTrue();
        }
        assertThat(DeadlineScope.current()).isSameAs(minute);
      }
    }

    @Test
    @DisplayName("DL-7 the accessor is found by the ServiceLoader, and can be registered by hand")
    void registered() {
      assertThat(ContextRegistry.getInstance().getThreadLocalAccessors())
          .hasAtLeastOneElementOfType(DeadlineThreadLocalAccessor.class);
      ContextRegistry own =
          new ContextRegistry().registerThreadLocalAccessor(new DeadlineThreadLocalAccessor());
      assertThat(own.getThreadLocalAccessors()).hasSize(1);
    }
  }
}
