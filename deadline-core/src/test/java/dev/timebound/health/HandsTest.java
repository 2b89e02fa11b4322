package dev.timebound.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

class HandsTest {

  /** Runs what it was given when it is told to; what is left at its end is dropped. */
  private static final class Slow implements Scheduler.Worker {
    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private boolean disposed;

    @Override
    public Disposable schedule(Runnable task) {
      if (disposed) {
        throw new RejectedExecutionException("disposed");
      }
      tasks.add(task);
      return Disposables.disposed();
    }

    @Override
    public void dispose() {
      disposed = true;
      tasks.clear();
    }

    void runAll() {
      while (!tasks.isEmpty()) {
        tasks.remove().run();
      }
    }
  }

  private final Slow scheduler = new Slow();
  private final Hands hands = new Hands("g", scheduler);
  private final List<String> done = new ArrayList<>();

  @Test
  @DisplayName("HE-12a what someone waits for runs, though the group is closed before its turn")
  void behindTheClose() {
    hands.later(() -> done.add("before"));
    hands.close();
    hands.surely(() -> done.add("sure"));
    hands.later(() -> done.add("not any more"));
    scheduler.runAll();
    assertThat(done).containsExactly("before", "sure");
  }

  @Test
  @DisplayName("HE-12a and on the thread that asks, once the Scheduler is gone")
  void rejected() {
    scheduler.dispose();
    hands.surely(() -> done.add("sure"));
    hands.later(() -> done.add("not any more"));
    hands.close();
    assertThat(done).containsExactly("sure");
  }

  @Test
  @DisplayName("HE-9 one that throws disturbs no other")
  void throwing() {
    hands.surely(
        () -> {
          throw new IllegalStateException("callback");
        });
    hands.surely(() -> done.add("next"));
    scheduler.runAll();
    assertThat(done).containsExactly("next");
  }
}
