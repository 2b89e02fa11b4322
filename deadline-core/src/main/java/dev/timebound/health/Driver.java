package dev.timebound.health;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

/*
 * The driver around the machine. Signals are serialised by a queue that the calling thread itself
 * drains, so that what a report decides holds for the very next pick of the same thread. Nothing
 * foreign runs there: fail handles, probes and listeners run on a worker of their own ("hands"),
 * ticks and due times on another, so that a slow adapter does not hold up the engine's time.
 */
final class Driver<M extends Member> {
  private static final Logger log = LoggerFactory.getLogger(HealthEngine.class);
  private static final Object CLOSE = new Object();

  /** What the group does for its driver. */
  interface Host<M extends Member> {
    /** Undoes what a claim holds, after it has ended. */
    void release(OpenClaim<M> claim);

    /** False where the old one has left, or the new one's name is taken. */
    boolean replace(Slot<M> old, M by, String name);
  }

  private final String group;
  private final HealthPolicy policy;
  private final Clock clock;
  private final Machine machine;
  private final Telling telling;
  private final Roster<M> roster;

  private final Host<M> host;

  private final Scheduler.Worker time;
  private final Hands hands;
  private final Prober<M> prober;
  private final Replacer<M> replacer;
  private final boolean dryRun;

  /** Null where silence is no source of suspicion. */
  private final @Nullable Sampler<M> sampler;

  private final Serial<Object> signals = new Serial<>(this::take);
  private volatile GroupState state = GroupState.EMPTY;
  private volatile boolean closed;

  // the drain's own
  private long wakeAt = Long.MAX_VALUE;
  private Disposable wakeTimer = Disposables.disposed();

  Driver(
      String group,
      HealthPolicy policy,
      EngineParts parts,
      long seed,
      Roster<M> roster,
      Host<M> host) {
    this.group = group;
    this.policy = policy;
    this.clock = parts.clock();
    this.dryRun = policy.dryRun || parts.dryRun();
    Backoff backoff = new Backoff(policy.probeFirst, policy.probeMax, seed);
    this.machine = new Machine(policy, backoff, dryRun);
    this.telling = parts.telling();
    this.roster = roster;
    this.host = host;
    this.time = parts.scheduler().createWorker();
    this.hands = new Hands(group, parts.scheduler().createWorker());
    this.prober = new Prober<>(policy, clock, parts.scheduler(), hands::later, this::offer);
    this.replacer =
        new Replacer<>(
            policy,
            backoff,
            parts.scheduler(),
            hands::later,
            hands::surely,
            this::offer,
            prober::probe,
            m -> roster.snapshot().slotOf(m) != null,
            roster::nameOfNew);
    this.sampler =
        policy.silenceNanos > 0
            ? new Sampler<>(policy.silenceNanos, time, this::offer, roster::watched)
            : null;
  }

  GroupState state() {
    return state;
  }

  void someoneWaits() {
    if (sampler != null) {
      sampler.someoneWaits();
    }
  }

  boolean isClosed() {
    return closed;
  }

  boolean isDryRun() {
    return dryRun;
  }

  /** Done by the time this returns, or by the thread that is at it right now. */
  void signal(Signal signal) {
    offer(signal);
  }

  /** What was decided is still carried out; nothing more is decided. */
  void close() {
    offer(CLOSE);
  }

  private void offer(Object signal) {
    if (closed) {
      return;
    }
    signals.offer(signal);
  }

  private void take(Object next) {
    long now = clock.now();
    if (closed) {
      return;
    }
    if (next == CLOSE) {
      shut();
    } else if (next instanceof Signal signal) {
      if (signal instanceof Signal.Wake) {
        wakeAt = Long.MAX_VALUE;
      }
      step(signal, now);
    } else if (sampler != null) {
      try {
        step(sampler.sample(now), now);
      } finally {
        sampler.next(state.hasSuspect());
      }
    }
  }

  private void step(Signal signal, long now) {
    GroupState before = state;
    Machine.Step step = machine.on(before, signal, now);
    state = step.state();
    boolean regroup = false;
    for (MemberState m : step.state().members()) {
      regroup |= project(before.get(m.id()), m);
    }
    if (regroup) {
      roster.regroup();
    }
    for (Effect effect : step.effects()) {
      perform(effect);
    }
    if (signal instanceof Signal.Drained d) {
      roster.forget(d.id());
    }
    wakeBy(machine.nextWake(step.state(), now), now);
  }

  /** Copies what picks and reports need; true where the choice has changed. */
  private boolean project(@Nullable MemberState was, MemberState is) {
    Slot<M> slot = roster.get(is.id());
    if (slot == null || was == is) {
      return false;
    }
    slot.watched = is.failures() > 0 || is.status() != MemberStatus.HEALTHY;
    if (dryRun) {
      return false;
    }
    if (was == null || !was.extra().equals(is.extra())) {
      int penalty = is.extra().penaltyUntil() == Clock.NEVER ? 0 : policy.penaltyWeight;
      slot.extra = penalty + SlowStart.load(policy, is.extra());
    }
    if (was == null || was.status() == is.status() || is.left()) {
      return false;
    }
    slot.round = is.quarantines();
    slot.status = is.status();
    slot.trial = is.status() == MemberStatus.HALF_OPEN ? Slot.TRIAL_FREE : Slot.NO_TRIAL;
    return true;
  }

  private void perform(Effect effect) {
    if (effect instanceof Effect.Discard e) {
      replacer.discard(e.number());
      return;
    }
    Slot<M> slot = roster.get(effect.id());
    if (slot == null) {
      return;
    }
    if (effect instanceof Effect.Changed e) {
      tell(e);
    } else if (effect instanceof Effect.FailClaims e) {
      failClaims(slot, e.reason());
    } else if (effect instanceof Effect.Prepare e) {
      replacer.start(slot, e.number());
    } else if (effect instanceof Effect.Replace e) {
      replace(slot, e);
    } else if (effect instanceof Effect.StartProbe e) {
      prober.start(slot, e.number());
    } else if (effect instanceof Effect.CancelProbe) {
      prober.cancel(slot.id);
    } else if (effect instanceof Effect.FreeTrial) {
      slot.trial = Slot.TRIAL_FREE;
    } else if (effect instanceof Effect.Penalised) {
      if (telling.counts() && !dryRun) {
        hands.later(() -> telling.penalised(group));
      }
    } else if (effect instanceof Effect.Probed e) {
      prober.ended(slot.id);
      if (telling.counts()) {
        hands.later(() -> telling.probed(group, e.outcome()));
      }
    }
  }

  private void tell(Effect.Changed e) {
    Instant now = clock.wall();
    Decision decision = Decision.of(group, e, dryRun, now);
    telling.decided(decision);
    HealthEvent event =
        new HealthEvent(group, e.name(), e.from(), e.to(), e.reason(), e.figure(), dryRun, now);
    hands.later(() -> telling.changed(event, decision));
  }

  private void replace(Slot<M> old, Effect.Replace e) {
    Replacer.Ready<M> ready = replacer.take(e.number());
    if (ready == null) {
      return;
    }
    M by = ready.member();
    if (host.replace(old, by, ready.name())) {
      hands.surely(() -> old.member.replaced(by, old.drained.asMono()));
      tell(e.told());
      return;
    }
    hands.surely(by::discarded);
    if (!old.left) {
      log.warn("health group {}: {} stays, its replacement's name is taken", group, old.name);
    }
  }

  /** All are ended before the first is told. */
  private void failClaims(Slot<M> slot, String reason) {
    if (dryRun) {
      return;
    }
    List<FailHandle> handles = new ArrayList<>();
    slot.claims.visit(
        claim -> {
          FailHandle handle = claim.failHandle;
          if (handle != null && claim.ends()) {
            host.release(claim);
            handles.add(handle);
          }
        });
    if (handles.isEmpty()) {
      return;
    }
    hands.surely(
        () -> {
          for (FailHandle handle : handles) {
            hands.guarded(() -> handle.fail(new QuarantinedException(group, slot.name, reason)));
          }
        });
  }

  private void wakeBy(long at, long now) {
    if (at >= wakeAt) {
      return;
    }
    wakeTimer.dispose();
    wakeAt = at;
    try {
      wakeTimer = time.schedule(this::wake, Math.max(0, at - now), TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException disposed) {
      wakeTimer = Disposables.disposed();
    }
  }

  private void wake() {
    offer(new Signal.Wake());
  }

  /** Runs foreign code that someone waits for, in any case. */
  void surely(Runnable task) {
    hands.surely(task);
  }

  private void shut() {
    closed = true;
    time.dispose();
    prober.close();
    replacer.close();
    hands.close();
  }
}
