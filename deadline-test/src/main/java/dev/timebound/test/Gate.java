package dev.timebound.test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * Holds scripts at a point until a test opens it: time in a test is an order of events, not a
 * sleep.
 *
 * <p>Once open it stays open. One gate may hold any number of calls. Thread-safe.
 */
public final class Gate {
  private record Waiting(Executor executor, Runnable task) {}

  private final List<Waiting> held = new ArrayList<>();
  private boolean open;

  /** Lets everything through that is held, and all that comes later. Opening twice does nothing. */
  public void open() {
    List<Waiting> released;
    synchronized (this) {
      open = true;
      released = List.copyOf(held);
      held.clear();
    }
    released.forEach(waiting -> waiting.executor.execute(waiting.task));
  }

  /** Whether it was opened. */
  public synchronized boolean isOpen() {
    return open;
  }

  /** How many calls it holds now; one that ended while held counts until the gate opens. */
  public synchronized int held() {
    return held.size();
  }

  /** Waits, for 30 s at most, until that many calls are held. */
  public void awaitHeld(int calls) {
    Await.until(
        "a gate holds " + calls + " calls", () -> held() >= calls, () -> "it holds " + held());
  }

  /** Runs the task on the executor once open; at once, on the caller's thread, if it is. */
  void whenOpen(Executor executor, Runnable task) {
    synchronized (this) {
      if (!open) {
        held.add(new Waiting(executor, task));
        return;
      }
    }
    task.run();
  }
}
