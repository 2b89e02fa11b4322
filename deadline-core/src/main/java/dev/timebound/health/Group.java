package dev.timebound.health;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.util.concurrent.Queues;

/*
 * The driver around the machine. Signals are serialised by a queue that the calling thread itself
 * drains, so that what a report decides holds for the very next pick of the same thread. Nothing
 * foreign runs there: fail handles, probes and listeners run on a worker of their own, ticks and due
 * times on another, so that a slow adapter does not hold up the engine's time.
 */
final class Group<M extends Member> implements HealthGroup<M> {
  private static final Logger log = LoggerFactory.getLogger(HealthEngine.class);

  private final String name;
  private final HealthPolicy policy;
  private final Clock clock;
  private final Machine machine;
  private final Picker picker;
  private final Prober<M> prober;
  private final Telling telling;
  private final Scheduler.Worker driver;
  private final Scheduler.Worker hands;

  private final Queue<Object> signals = Queues.unboundedMultiproducer().get();
  private final AtomicInteger wip = new AtomicInteger();

  /** Guards who is in the group; picks read the snapshot only. */
  private final Object membership = new Object();

  private final List<Slot<M>> slots = new ArrayList<>();
  private final Map<Integer, Slot<M>> byId = new ConcurrentHashMap<>();
  private final Set<Slot<M>> leaving = ConcurrentHashMap.newKeySet();
  private final AtomicInteger ids = new AtomicInteger();

  private volatile Snapshot<M> snapshot = new Snapshot<>(List.of());
  private volatile GroupState state = GroupState.EMPTY;
  private volatile boolean closed;

  private final @Nullable Sampler<M> sampler;

  // the drain's own
  private long wakeAt = Long.MAX_VALUE;
  private Disposable wakeTimer = Disposables.disposed();

  Group(String name, HealthPolicy policy, EngineParts parts, long seed) {
    this.name = name;
    this.policy = policy;
    this.clock = parts.clock();
    this.machine =
        new Machine(policy, new Backoff(policy.probeFirst, policy.probeMax, Mix.mix(seed)));
    this.picker = new Picker(seed);
    this.driver = parts.scheduler().createWorker();
    this.hands = parts.scheduler().createWorker();
    this.prober = new Prober<>(policy, clock, parts.scheduler(), this::onHands, this::signal);
    this.telling = parts.telling();
    this.sampler =
        policy.silenceNanos > 0
            ? new Sampler<>(policy.silenceNanos, driver, this::signal, this::watchedSlots)
            : null;
  }

  // --- the choice

  @Override
  public String name() {
    return name;
  }

  @Override
  public @Nullable Claim<M> pick(Predicate<? super M> exclude, @Nullable FailHandle failHandle) {
    Snapshot<M> s = snapshot;
    while (true) {
      for (Slot<M> slot : s.halfOpen) {
        if (!exclude.test(slot.member) && slot.takeTrial()) {
          slot.claim();
          OpenClaim<M> claim = register(slot, failHandle, true, slot.round, false);
          if (claim != null) {
            return claim;
          }
        }
      }
      Slot<M> slot = claimLeast(s.inService, exclude);
      boolean out = slot == null;
      if (slot == null && !policy.ownFallback) {
        slot = claimLeast(s.everyone(), exclude);
      }
      if (slot == null) {
        return null;
      }
      OpenClaim<M> claim = register(slot, failHandle, true, 0, out);
      if (claim != null) {
        return claim;
      }
      // it went out or left this very moment, and the snapshot may not tell yet
      s = s.refreshed();
    }
  }

  private @Nullable Slot<M> claimLeast(Slot<M>[] slots, Predicate<? super M> exclude) {
    Slot<M> slot = picker.claimLeast(slots, exclude);
    return slot != null ? slot : picker.claimLeast(slots, any -> false);
  }

  @Override
  public Candidates<M> inOrder(List<? extends M> order, @Nullable FailHandle failHandle) {
    return new Cursor<>(this, order, failHandle);
  }

  Snapshot<M> snapshot() {
    return snapshot;
  }

  boolean hasOwnFallback() {
    return policy.ownFallback;
  }

  /**
   * Registers a claim that is counted already. The status is read after the claim stands among the
   * open ones, and a quarantine reads those after it has set the status: one of the two sees the
   * other (BT-15).
   *
   * @param out it was chosen although it is out of service
   * @return null where it was chosen as one in service and is not, or left; the count is undone
   */
  @Nullable OpenClaim<M> register(
      Slot<M> slot, @Nullable FailHandle failHandle, boolean first, int trial, boolean out) {
    OpenClaim<M> claim = new OpenClaim<>(this, slot, failHandle, first, trial);
    slot.claims.add(claim, slot.open, claim);
    boolean moved = slot.left || (!out && slot.status == MemberStatus.QUARANTINED);
    if (moved && claim.ends()) {
      release(claim);
      return null;
    }
    return claim;
  }

  // --- reports

  void someoneWaits() {
    if (sampler != null) {
      sampler.someoneWaits();
    }
  }

  void succeeded(OpenClaim<M> claim) {
    release(claim);
    if (claim.slot.watched) {
      signal(new Signal.Ended(claim.slot.id, null, null, claim.first, claim.trial));
    }
  }

  void failed(OpenClaim<M> claim, FailureKind kind, @Nullable Throwable cause) {
    Slot<M> slot = claim.slot;
    if (policy.penaltyWeight > 0 && !closed) {
      // at once and not by the drain, which another thread may be busy with (BT-4)
      slot.extra = policy.penaltyWeight;
    }
    release(claim);
    signal(new Signal.Ended(slot.id, kind, cause, claim.first, claim.trial));
  }

  void cancelled(OpenClaim<M> claim) {
    release(claim);
    if (claim.trial != 0) {
      signal(new Signal.TrialCancelled(claim.slot.id, claim.trial));
    }
  }

  private void release(OpenClaim<M> claim) {
    claim.forget();
    if (claim.slot.release() == 0 && claim.slot.left) {
      drained(claim.slot);
    }
  }

  // --- members

  @Override
  public void add(M member) {
    String memberName = Settings.name("member", member.name());
    Slot<M> slot;
    synchronized (membership) {
      for (Slot<M> s : slots) {
        if (s.name.equals(memberName)) {
          throw Settings.refused("member", memberName, "not yet in group " + name);
        }
      }
      slot = new Slot<>(ids.incrementAndGet(), member, memberName);
      slots.add(slot);
      byId.put(slot.id, slot);
      // before anyone can pick it: no report overtakes its joining
      signal(new Signal.Joined(slot.id, memberName));
      snapshot = new Snapshot<>(slots);
    }
  }

  @Override
  public Mono<Void> remove(M member) {
    Slot<M> slot = null;
    synchronized (membership) {
      for (Slot<M> s : slots) {
        if (s.member == member) {
          slot = s;
        }
      }
      if (slot == null) {
        for (Slot<M> s : leaving) {
          if (s.member == member) {
            return s.drained.asMono();
          }
        }
        return Mono.empty();
      }
      slots.remove(slot);
      leaving.add(slot);
      slot.left = true;
      snapshot = new Snapshot<>(slots);
    }
    signal(new Signal.Left(slot.id));
    if (slot.open == 0) {
      drained(slot);
    }
    return slot.drained.asMono();
  }

  private void drained(Slot<M> slot) {
    if (slot.go()) {
      leaving.remove(slot);
      signal(new Signal.Drained(slot.id));
      onHands(slot.drained::tryEmitEmpty);
    }
  }

  // --- reading

  @Override
  public Collection<MemberHealth> members() {
    GroupState now = state;
    return snapshot.all.stream().map(s -> health(s, now)).toList();
  }

  @Override
  public @Nullable MemberHealth health(String member) {
    for (Slot<M> s : snapshot.all) {
      if (s.name.equals(member)) {
        return health(s, state);
      }
    }
    return null;
  }

  private MemberHealth health(Slot<M> s, GroupState known) {
    MemberState m = known.get(s.id);
    Duration silence = Duration.ofNanos(m == null ? 0 : m.silence(clock.now()));
    return new MemberHealth(
        s.name, s.status, s.open, s.extra, silence, m == null ? 0 : m.quarantines());
  }

  @Override
  public int openClaims() {
    int open = 0;
    for (Slot<M> s : watchedSlots()) {
      open += s.open;
    }
    return open;
  }

  private Collection<Slot<M>> watchedSlots() {
    if (leaving.isEmpty()) {
      return snapshot.all;
    }
    List<Slot<M>> all = new ArrayList<>(snapshot.all);
    all.addAll(leaving);
    return all;
  }

  // --- the drain

  private void signal(Object signal) {
    if (closed) {
      return;
    }
    signals.offer(signal);
    if (wip.getAndIncrement() != 0) {
      return;
    }
    int missed = 1;
    do {
      Object next;
      while ((next = signals.poll()) != null) {
        try {
          step(next);
        } catch (RuntimeException e) {
          log.error("health group {}: a report was lost", name, e);
        }
      }
      missed = wip.addAndGet(-missed);
    } while (missed != 0);
  }

  private void step(Object next) {
    long now = clock.now();
    Signal signal;
    if (next instanceof Signal s) {
      signal = s;
    } else if (sampler != null) {
      signal = sampler.sample(now);
    } else {
      return;
    }
    if (signal instanceof Signal.Wake) {
      wakeAt = Long.MAX_VALUE;
    }
    GroupState before = state;
    Machine.Step step = machine.on(before, signal, now);
    state = step.state();
    boolean regroup = false;
    for (MemberState m : step.state().members()) {
      regroup |= project(before.get(m.id()), m);
    }
    if (regroup) {
      synchronized (membership) {
        snapshot = new Snapshot<>(slots);
      }
    }
    for (Effect effect : step.effects()) {
      perform(effect);
    }
    if (signal instanceof Signal.Drained d) {
      byId.remove(d.id());
    }
    if (sampler != null && signal instanceof Signal.Tick) {
      sampler.next(step.state().hasSuspect());
    }
    wakeBy(machine.nextWake(step.state(), now), now);
  }

  /** Copies what picks need; true where the member's status changed. */
  private boolean project(@Nullable MemberState was, MemberState is) {
    Slot<M> slot = byId.get(is.id());
    if (slot == null || was == is) {
      return false;
    }
    if (was == null || was.penaltyUntil() != is.penaltyUntil()) {
      slot.extra = is.penaltyUntil() == Clock.NEVER ? 0 : policy.penaltyWeight;
    }
    slot.watched = is.failures() > 0 || is.status() != MemberStatus.HEALTHY;
    slot.round = is.quarantines();
    if (was == null || was.status() == is.status()) {
      return false;
    }
    slot.status = is.left() ? slot.status : is.status();
    slot.trial = is.status() == MemberStatus.HALF_OPEN ? Slot.TRIAL_FREE : Slot.NO_TRIAL;
    return true;
  }

  private void perform(Effect effect) {
    Slot<M> slot = byId.get(effect.id());
    if (slot == null) {
      return;
    }
    if (effect instanceof Effect.Changed e) {
      HealthEvent event =
          new HealthEvent(name, e.name(), e.from(), e.to(), e.reason(), e.figure(), clock.wall());
      onHands(() -> telling.changed(event));
    } else if (effect instanceof Effect.FailClaims e) {
      failClaims(slot, e.reason());
    } else if (effect instanceof Effect.StartProbe e) {
      prober.start(slot, e.number());
    } else if (effect instanceof Effect.CancelProbe) {
      prober.cancel(slot.id);
    } else if (effect instanceof Effect.FreeTrial) {
      slot.trial = Slot.TRIAL_FREE;
    } else if (effect instanceof Effect.Penalised) {
      onHands(() -> telling.penalised(name));
    } else if (effect instanceof Effect.Probed e) {
      onHands(() -> telling.probed(name, e.outcome()));
    }
  }

  private void failClaims(Slot<M> slot, String reason) {
    slot.claims.visit(
        claim -> {
          FailHandle handle = claim.failHandle;
          if (handle != null && claim.ends()) {
            release(claim);
            onHands(() -> handle.fail(new QuarantinedException(name, slot.name, reason)));
          }
        });
  }

  private void wakeBy(long at, long now) {
    if (at >= wakeAt) {
      return;
    }
    wakeTimer.dispose();
    wakeAt = at;
    wakeTimer = schedule(driver, this::wake, Math.max(0, at - now));
  }

  private void wake() {
    signal(new Signal.Wake());
  }

  private void onHands(Runnable task) {
    schedule(
        hands,
        () -> {
          try {
            task.run();
          } catch (RuntimeException e) {
            log.warn("health group {}: a callback failed", name, e);
          }
        },
        0);
  }

  private static Disposable schedule(Scheduler.Worker worker, Runnable task, long nanos) {
    try {
      return nanos == 0
          ? worker.schedule(task)
          : worker.schedule(task, nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException closed) {
      return Disposables.disposed();
    }
  }

  void close() {
    closed = true;
    driver.dispose();
    hands.dispose();
  }
}
