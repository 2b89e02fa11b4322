package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.resilience4j.core.IntervalFunction;
import io.micrometer.context.ThreadLocalAccessor;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

@Timeout(60)
class WithoutMicrometerTest {
  /** What the code runs with, and nothing else: no Micrometer, no context-propagation. */
  private static URL[] needed() {
    return Stream.of(
            Deadlines.class,
            WithoutMicrometerTest.class,
            Mono.class,
            Publisher.class,
            IntervalFunction.class,
            Nullable.class)
        .map(type -> type.getProtectionDomain().getCodeSource().getLocation())
        .distinct()
        .toArray(URL[]::new);
  }

  @Test
  @DisplayName("DL-7 without context-propagation and Micrometer all else works")
  void absent() throws Exception {
    try (URLClassLoader bare = new URLClassLoader(needed(), ClassLoader.getPlatformClassLoader())) {
      for (Class<?> missing : List.of(ThreadLocalAccessor.class, MeterRegistry.class)) {
        assertThatThrownBy(() -> bare.loadClass(missing.getName()))
            .isInstanceOf(ClassNotFoundException.class);
      }
      Class<?> use = bare.loadClass(Use.class.getName());
      assertThat(use.getClassLoader()).isSameAs(bare);
      Object answer = use.getMethod("all").invoke(null);
      assertThat(answer).isEqualTo("[answer] after 2 calls, scope true, budget 1");
    }
  }

  /** Loaded without Micrometer. */
  public static final class Use {
    private Use() {}

    /** Uses every part. */
    public static String all() {
      RetryBudget budget = RetryBudget.create();
      int[] calls = {0};
      Mono<String> call =
          Mono.defer(
              () ->
                  ++calls[0] == 1
                      ? Mono.<String>error(new IOException("first"))
                      : Mono.just("answer"));
      Object answer =
          Deadlines.concatMapShared(
                  List.of(1),
                  item ->
                      call.transform(Deadlines.hedge(Duration.ofSeconds(5), budget))
                          .retryWhen(RetryWithin.maxRetries(1).budget(budget)))
              .collectList()
              .transform(
                  Deadlines.of(DeadlineHeaders.create().read(name -> null).deadline(), "without"))
              .contextCapture()
              .block();
      boolean scoped;
      try (DeadlineScope scope = DeadlineScope.open(Deadline.after(Duration.ofMinutes(1)))) {
        scoped = !DeadlineScope.current().isNone();
      }
      return answer
          + " after "
          + calls[0]
          + " calls, scope "
          + scoped
          + ", budget "
          + budget.granted();
    }
  }
}
