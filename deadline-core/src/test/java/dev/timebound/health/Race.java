package dev.timebound.health;

import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Lets two tasks run at the same moment, again and again: a partner thread spins for its task, so
 * that the two begin some tens of nanoseconds apart, this way and that.
 */
public final class Race implements AutoCloseable {
  private final Random random;
  private final Thread partner;
  private volatile long round;
  private volatile long done;
  private volatile boolean over;
  private @Nullable Runnable theirs;
  private @Nullable Throwable thrown;
  private int delay;

  public Race(long seed) {
    random = new Random(seed);
    partner = new Thread(this::partner, "race-" + seed);
    partner.start();
  }

  /** One on this thread, one on the partner's; returns when both have ended. */
  public void run(Runnable mine, Runnable theirs) {
    this.theirs = theirs;
    this.delay = random.nextInt(60);
    int own = random.nextInt(250);
    round++;
    pause(own);
    mine.run();
    for (int i = 0; done != round; i++) {
      patience(i);
    }
    if (thrown != null) {
      throw new AssertionError(thrown);
    }
  }

  /**
   * Both do step after step, each step begun by both at about the same moment.
   *
   * @param look what both do before it: who made a thing has it at hand, the other has not
   */
  public void lockstep(int steps, IntConsumer look, IntConsumer mine, IntConsumer theirs) {
    AtomicInteger a = new AtomicInteger(-1);
    AtomicInteger b = new AtomicInteger(-1);
    long seed = random.nextLong();
    run(() -> steps(steps, a, b, look, mine, seed), () -> steps(steps, b, a, look, theirs, ~seed));
  }

  private void steps(
      int steps,
      AtomicInteger own,
      AtomicInteger other,
      IntConsumer look,
      IntConsumer step,
      long seed) {
    for (int i = 0; i < steps; i++) {
      look.accept(i);
      own.set(i);
      for (int turn = 0; other.get() < i; turn++) {
        patience(turn);
      }
      pause((int) (Mix.unit(seed + i) * 40));
      step.accept(i);
    }
  }

  private void partner() {
    for (long next = 1; ; next++) {
      for (int i = 0; round != next; i++) {
        if (over) {
          return;
        }
        patience(i);
      }
      pause(delay);
      Runnable task = theirs;
      try {
        if (task != null) {
          task.run();
        }
      } catch (RuntimeException | AssertionError e) {
        thrown = e;
      }
      done = next;
    }
  }

  @SuppressWarnings("UnusedVariable")
  private void pause(int turns) {
    for (int i = 0; i < turns; i++) {
      boolean read = over;
    }
  }

  /** Where the other one is not running there is no use in spinning. */
  private static void patience(int turn) {
    if (turn > 2000) {
      Thread.yield();
    }
  }

  @Override
  public void close() {
    over = true;
  }
}
