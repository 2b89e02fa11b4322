package dev.timebound.health;

import static dev.timebound.health.FailureKind.ANSWER;
import static dev.timebound.health.FailureKind.CONNECTION;
import static dev.timebound.health.FailureKind.OVERLOAD;
import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.scheduler.Schedulers;
import reactor.test.scheduler.VirtualTimeScheduler;

class KeyedHealthTest {
  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private final HealthEngine engine =
      HealthEngine.builder().scheduler(time).meters(registry).seed(7).build();
  private final KeyedHealth<String> keys = engine.keyed("fetch", ofSeconds(30), 100);

  @AfterEach
  void close() {
    engine.close();
    time.dispose();
  }

  @Nested
  class Penalty {
    @Test
    @DisplayName("FE-20 one that failed comes last, for a time from its last failure")
    void last() {
      List<String> asked = List.of("a", "b", "c", "d");
      keys.failed("a", CONNECTION);
      keys.failed("c", OVERLOAD);
      assertThat(keys.inOrder(asked)).containsExactly("b", "d", "a", "c");
      assertThat(keys.isPenalised("a")).isTrue();
      assertThat(keys.isPenalised("b")).isFalse();
      time.advanceTimeBy(ofSeconds(20));
      keys.failed("a", CONNECTION);
      time.advanceTimeBy(ofSeconds(10));
      assertThat(keys.inOrder(asked)).containsExactly("b", "c", "d", "a");
      time.advanceTimeBy(ofSeconds(20).minusNanos(1));
      assertThat(keys.penalised()).containsExactly("a");
      time.advanceTimeBy(Duration.ofNanos(1));
      assertThat(keys.inOrder(asked)).isSameAs(asked);
    }

    @Test
    @DisplayName("FE-20 an answer ends it, by whatever way it comes")
    void answer() {
      keys.failed("a", CONNECTION);
      keys.failed("b", CONNECTION);
      keys.answered("a");
      keys.failed("b", ANSWER);
      keys.answered("stranger");
      keys.failed("stranger", ANSWER);
      assertThat(keys.size()).isZero();
    }

    @Test
    @DisplayName("FE-20 with all of them penalised the order is the one given")
    void all() {
      keys.failed("b", CONNECTION);
      keys.failed("a", CONNECTION);
      assertThat(keys.inOrder(List.of("a", "b"))).containsExactly("a", "b");
      assertThat(keys.penalised()).as("the eldest first").containsExactly("b", "a");
    }

    @Test
    @DisplayName("HE-10 one timer while there is a penalty, none after")
    void timers() {
      for (int i = 0; i < 50; i++) {
        keys.failed("k" + i, CONNECTION);
      }
      assertThat(time.getScheduledTaskCount()).isLessThanOrEqualTo(3);
      time.advanceTimeBy(ofMinutes(1));
      assertThat(keys.size()).isZero();
      long before = time.getScheduledTaskCount();
      time.advanceTimeBy(ofMinutes(60));
      assertThat(time.getScheduledTaskCount()).isEqualTo(before);
    }
  }

  @Nested
  class Bounded {
    /** One key that is as heavy as a topic's name may be. */
    private record Heavy(int n, byte[] name) {
      static Heavy of(int n) {
        return new Heavy(n, new byte[4096]);
      }

      @Override
      public boolean equals(@Nullable Object o) {
        return o instanceof Heavy other && other.n == n;
      }

      @Override
      public int hashCode() {
        return n;
      }
    }

    @Test
    @DisplayName(
        "HE-13a a million keys that come and go: only the last of those that failed are held")
    void million() {
      KeyedHealth<Heavy> many = engine.keyed("many", ofMinutes(60), 1000);
      List<WeakReference<Heavy>> failed = new ArrayList<>();
      // 4 GB of keys in all
      for (int i = 0; i < 1_000_000; i++) {
        Heavy key = Heavy.of(i);
        if (i % 2 == 0) {
          many.failed(key, CONNECTION);
        } else {
          many.answered(key);
        }
        if (i % 10_000 == 0) {
          failed.add(new WeakReference<>(key));
        }
        if (many.size() > 1000) {
          assertThat(many.size()).isLessThanOrEqualTo(1000);
        }
      }
      assertThat(many.size()).isEqualTo(1000);
      assertThat(many.isPenalised(Heavy.of(997_998))).isFalse();
      assertThat(many.isPenalised(Heavy.of(998_000))).isTrue();
      System.gc();
      assertThat(failed).as("let go").anyMatch(key -> key.get() == null);
      assertThat(time.getScheduledTaskCount()).as("timers").isLessThan(10);
    }

    @Test
    @DisplayName(
        "HE-13a the one whose last failure is oldest goes; to fail again is to be young again")
    void leastRecent() {
      KeyedHealth<String> three = engine.keyed("three", ofMinutes(60), 3);
      for (String key : List.of("a", "b", "c", "a", "d")) {
        three.failed(key, CONNECTION);
      }
      assertThat(three.penalised()).containsExactly("c", "a", "d");
    }

    @Test
    @DisplayName("HE-13a members that come and go leave nothing in their group either")
    void members() {
      HealthGroup<FakeMember> group =
          engine.group(
              "members",
              HealthPolicy.consecutiveFailures(1)
                  .restoredByProbe(ofSeconds(1))
                  .penalty(5, ofMinutes(60))
                  .slowStart(5, ofMinutes(60))
                  .replaceRepeatOffenders(2, ofMinutes(5), 2, ofMinutes(1))
                  .build());
      FakeMember stays = FakeMember.named("stays");
      group.add(stays);
      List<WeakReference<FakeMember>> gone = new ArrayList<>();
      for (int i = 0; i < 20_000; i++) {
        FakeMember m = FakeMember.named("m" + i);
        group.add(m);
        requireNonNull(group.inOrder(List.of(m), null).next()).failed(CONNECTION, null);
        group.remove(m);
        if (i < 100) {
          gone.add(new WeakReference<>(m));
        }
      }
      assertThat(group.members()).hasSize(1);
      assertThat(engine.decisions()).hasSize(500);
      // cancelled timers are the scheduler's until their time
      time.advanceTimeBy(ofMinutes(61));
      for (int i = 0; i < 50 && gone.stream().anyMatch(m -> m.get() != null); i++) {
        System.gc();
      }
      assertThat(gone).allMatch(m -> m.get() == null);
    }
  }

  @Nested
  class Shown {
    @Test
    @DisplayName("HE-13a HE-9 one gauge a group, whatever the number of keys; gone with the group")
    void meters() {
      int before = registry.getMeters().size();
      for (int i = 0; i < 90; i++) {
        keys.failed("k" + i, CONNECTION);
      }
      assertThat(registry.get("timebound.health.keys").tag("group", "fetch").gauge().value())
          .isEqualTo(90);
      assertThat(registry.get("timebound.health.penalties").tag("group", "fetch").counter().count())
          .isEqualTo(90);
      assertThat(registry.getMeters()).hasSizeLessThanOrEqualTo(before + 1);
      engine.remove(keys);
      assertThat(registry.find("timebound.health.keys").gauge()).isNull();
    }

    @Test
    @DisplayName("HE-1 the engine shows it, and lets it go")
    void engine() {
      assertThat(engine.keyedGroups()).extracting(KeyedHealth::name).containsExactly("fetch");
      keys.failed("a", CONNECTION);
      assertThat(engine).hasToString("HealthEngine[fetch{penalised=1}]");
      engine.remove(keys);
      assertThat(engine.keyedGroups()).isEmpty();
      keys.failed("b", CONNECTION);
      keys.answered("a");
      assertThat(keys.penalised()).as("it learns nothing more").containsExactly("a");
      engine.keyed("fetch", ofSeconds(1), 1);
    }

    @Test
    @DisplayName("HE-13 in a dry run it tells who would come last, and keeps the order")
    void dryRun() {
      try (HealthEngine dry = HealthEngine.builder().scheduler(time).dryRun(true).build()) {
        KeyedHealth<String> group = dry.keyed("fetch", ofSeconds(30), 100);
        group.failed("a", CONNECTION);
        List<String> asked = List.of("a", "b");
        assertThat(group.inOrder(asked)).isSameAs(asked);
        assertThat(group.isPenalised("a")).isFalse();
        assertThat(group.penalised()).containsExactly("a");
      }
    }

    @Test
    @DisplayName("HE-13a names and values are checked")
    void refused() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.keyed("fetch", ofSeconds(1), 1))
          .withMessageContaining("group: fetch (expected: not yet in this engine");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.group("fetch", HealthPolicy.loadOnly().build()));
      engine.group("pool", HealthPolicy.loadOnly().build());
      assertThatIllegalArgumentException().isThrownBy(() -> engine.keyed("pool", ofSeconds(1), 1));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.keyed("other", ofSeconds(0), 1))
          .withMessage("penalty: PT0S (expected: > 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.keyed("other", ofSeconds(1), 0))
          .withMessage("most: 0 (expected: >= 1)");
      engine.close();
      assertThatIllegalStateException().isThrownBy(() -> engine.keyed("x", ofSeconds(1), 1));
    }
  }

  @Test
  @DisplayName("HE-13a HE-2 whatever races, what is read and what is held agree in the end")
  void races() throws Exception {
    try (HealthEngine real = HealthEngine.builder().scheduler(Schedulers.parallel()).build()) {
      KeyedHealth<Integer> group = real.keyed("races", ofMinutes(10), 64);
      ExecutorService pool = Executors.newFixedThreadPool(4);
      try {
        List<Future<?>> done = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
          Random random = new Random(t);
          done.add(
              pool.submit(
                  () -> {
                    for (int i = 0; i < 50_000; i++) {
                      int key = random.nextInt(200);
                      if (random.nextInt(3) == 0) {
                        group.answered(key);
                      } else {
                        group.failed(key, CONNECTION);
                      }
                    }
                  }));
        }
        for (Future<?> f : done) {
          f.get(60, TimeUnit.SECONDS);
        }
      } finally {
        pool.shutdownNow();
      }
      assertThat(group.size()).isLessThanOrEqualTo(64);
      Set<Integer> held = new HashSet<>(group.penalised());
      held.forEach(group::answered);
      assertThat(group.size()).as("each that is read can be ended").isZero();
      for (int key = 1000; key < 1064; key++) {
        group.failed(key, CONNECTION);
      }
      assertThat(group.size()).as("nothing but what is read takes room").isEqualTo(64);
    }
  }
}
