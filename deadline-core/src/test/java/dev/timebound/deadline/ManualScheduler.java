package dev.timebound.deadline;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

/**
 * A clock that stands still and timers that fire only when told, from the thread that tells them:
 * so a test can let a timer be late, and race it.
 */
final class ManualScheduler implements Scheduler {
  private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 1_000); // about to overflow
  private final List<Timer> pending = new ArrayList<>();
  private final AtomicInteger readings = new AtomicInteger();
  private int scheduled;
  private boolean refusing;

  private record Timer(long at, Runnable task, Disposable handle) {}

  /** Moves the clock, and fires nothing. */
  void pass(Duration time) {
    now.addAndGet(time.toNanos());
  }

  /** Fires what is due. */
  void fire() {
    List<Timer> due = new ArrayList<>();
    synchronized (this) {
      pending.removeIf(timer -> timer.at - now.get() <= 0 && due.add(timer));
    }
    due.stream().filter(timer -> !timer.handle.isDisposed()).forEach(timer -> timer.task.run());
  }

  /** Fires all, due or not, as a scheduler that is early. */
  void fireEarly() {
    List<Timer> all;
    synchronized (this) {
      all = new ArrayList<>(pending);
      pending.clear();
    }
    all.forEach(timer -> timer.task.run());
  }

  void refuse() {
    refusing = true;
  }

  /** Timers that are neither fired nor cancelled. */
  synchronized int pending() {
    return pending.size();
  }

  /** How often the clock was read. */
  int readings() {
    return readings.get();
  }

  /** Timers that were ever started. */
  synchronized int scheduled() {
    return scheduled;
  }

  @Override
  public synchronized Disposable schedule(Runnable task, long delay, TimeUnit unit) {
    if (refusing) {
      throw new RejectedExecutionException("refused");
    }
    assertPositive(delay);
    scheduled++;
    Timer[] self = new Timer[1];
    Disposable handle =
        Disposables.composite(
            () -> {
              synchronized (this) {
                pending.remove(self[0]);
              }
            });
    self[0] = new Timer(now.get() + unit.toNanos(delay), task, handle);
    pending.add(self[0]);
    return handle;
  }

  @Override
  public Disposable schedule(Runnable task) {
    throw new AssertionError("a timer of 0");
  }

  @Override
  public Worker createWorker() {
    throw new UnsupportedOperationException();
  }

  @Override
  public long now(TimeUnit unit) {
    readings.incrementAndGet();
    return unit.convert(now.get(), TimeUnit.NANOSECONDS);
  }

  private static void assertPositive(long delay) {
    if (delay <= 0) {
      throw new AssertionError("a timer of " + delay);
    }
  }
}
