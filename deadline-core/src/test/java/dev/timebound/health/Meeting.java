package dev.timebound.health;

import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Where two threads wait for each other, once each. Whoever is not of a {@link #race} walks by. */
public final class Meeting {
  private static final ThreadLocal<CyclicBarrier> EXPECTED = new ThreadLocal<>();

  private Meeting() {}

  /** Called by the classes that {@link Interleaved} made. */
  public static void meet() {
    CyclicBarrier barrier = EXPECTED.get();
    if (barrier == null) {
      return;
    }
    EXPECTED.remove();
    try {
      barrier.await(20, TimeUnit.SECONDS);
    } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
      throw new AssertionError("the other one did not come by here", e);
    }
  }

  /**
   * Both, each on a thread of its own, the two of them past their first read before either goes on.
   *
   * @return how many gave true
   */
  public static int race(Callable<Boolean> one, Callable<Boolean> two) throws Exception {
    CyclicBarrier barrier = new CyclicBarrier(2);
    FutureTask<Boolean> first = start(barrier, one);
    FutureTask<Boolean> second = start(barrier, two);
    boolean a = first.get(30, TimeUnit.SECONDS);
    boolean b = second.get(30, TimeUnit.SECONDS);
    return (a ? 1 : 0) + (b ? 1 : 0);
  }

  private static FutureTask<Boolean> start(CyclicBarrier barrier, Callable<Boolean> task) {
    FutureTask<Boolean> future =
        new FutureTask<>(
            () -> {
              EXPECTED.set(barrier);
              boolean won = task.call();
              if (EXPECTED.get() != null) {
                throw new AssertionError("nothing was read where the two should meet");
              }
              return won;
            });
    new Thread(future, "meeting").start();
    return future;
  }
}
