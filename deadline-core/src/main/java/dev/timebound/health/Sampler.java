package dev.timebound.health;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;
import reactor.core.scheduler.Scheduler;

/*
 * Measures silence without a clock in the reports: claims leave the number of their wait, members a
 * mark, and a tick at a tenth of the limit notes when it first saw them. What it measures is too
 * short by up to a tick at each end, never too long. It ticks while a claim waits or a member is
 * suspect, and not else.
 *
 * Its time is a clock of its own, which a tick advances by two periods at most: what a tick came late
 * by more than that (the process stood still, the Scheduler was busy) is nobody's silence (HE-10).
 */
final class Sampler<M extends Member> {
  /** Put into the group's queue; the sample is taken where it is drained. */
  static final Object TICK = new Object();

  private final long period;
  private final Scheduler.Worker driver;
  private final Consumer<Object> signal;
  private final Supplier<Collection<Slot<M>>> slots;
  private final AtomicBoolean ticking = new AtomicBoolean();

  // the drain's own
  private boolean rested = true;
  private boolean anyoneWaits;
  private long lastTick;
  private long measured;

  Sampler(
      long limit,
      Scheduler.Worker driver,
      Consumer<Object> signal,
      Supplier<Collection<Slot<M>>> slots) {
    this.period = limit / 10;
    this.driver = driver;
    this.signal = signal;
    this.slots = slots;
  }

  /**
   * After a claim has written its wait: either this sees that nothing ticks, or the tick that stops
   * sees the wait.
   */
  void someoneWaits() {
    if (!ticking.get()) {
      start();
    }
  }

  private void start() {
    if (ticking.compareAndSet(false, true)) {
      schedule(0);
    }
  }

  private void schedule(long nanos) {
    try {
      driver.schedule(() -> signal.accept(TICK), nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException closed) {
      // the engine is closed, nothing is measured any more
    }
  }

  Signal.Tick sample(long now) {
    long passed = now - lastTick;
    measured += rested ? passed : Math.min(passed, 2 * period);
    rested = false;
    lastTick = now;
    anyoneWaits = false;
    List<Signal.Sample> samples = new ArrayList<>();
    for (Slot<M> slot : slots.get()) {
      boolean progressed = slot.progressed;
      if (progressed) {
        slot.progressed = false;
      }
      Oldest oldest = new Oldest(measured);
      slot.claims.visit(oldest);
      if (oldest.since != Clock.NEVER && !Slot.isListening(slot.member)) {
        oldest.startsAnew();
        slot.claims.visit(oldest);
      }
      anyoneWaits |= oldest.since != Clock.NEVER;
      samples.add(new Signal.Sample(slot.id, progressed, oldest.since));
    }
    return new Signal.Tick(measured, samples);
  }

  /** After the machine has had the sample. */
  void next(boolean suspects) {
    if (anyoneWaits || suspects) {
      schedule(period);
      return;
    }
    rested = true;
    ticking.set(false);
    for (Slot<M> slot : slots.get()) {
      slot.claims.visit(
          claim -> {
            if (claim.wait != 0 && !claim.isEnded()) {
              start();
            }
          });
    }
  }

  /** Finds the longest wait of one member's claims. */
  private static final class Oldest implements Consumer<OpenClaim<?>> {
    private final long now;
    private long since = Clock.NEVER;
    private boolean anew;

    Oldest(long now) {
      this.now = now;
    }

    /** What was waited so far counts for nothing. */
    void startsAnew() {
      anew = true;
      since = Clock.NEVER;
    }

    @Override
    public void accept(OpenClaim<?> claim) {
      int wait = claim.wait;
      if (anew || wait != claim.seenWait) {
        claim.seenWait = wait;
        claim.seenAt = now;
      }
      if (wait != 0 && !claim.isEnded() && (since == Clock.NEVER || claim.seenAt < since)) {
        since = claim.seenAt;
      }
    }
  }
}
