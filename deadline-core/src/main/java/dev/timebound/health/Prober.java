package dev.timebound.health;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/** Runs probes, one a member at most. Called from the group's drain; the members' code is not. */
final class Prober<M extends Member> {
  private final HealthPolicy policy;
  private final Clock clock;
  private final Scheduler scheduler;
  private final Consumer<Runnable> hands;
  private final Consumer<Object> signal;

  /** The drain's own. */
  private final Map<Integer, Disposable.Swap> running = new HashMap<>();

  Prober(
      HealthPolicy policy,
      Clock clock,
      Scheduler scheduler,
      Consumer<Runnable> hands,
      Consumer<Object> signal) {
    this.policy = policy;
    this.clock = clock;
    this.scheduler = scheduler;
    this.hands = hands;
    this.signal = signal;
  }

  void start(Slot<M> slot, int number) {
    Disposable.Swap probe = Disposables.swap();
    running.put(slot.id, probe);
    Mono<ProbeOutcome> run = probe(slot.member, slot.lateness);
    hands.accept(
        () ->
            probe.replace(
                run.subscribe(
                    outcome -> signal.accept(new Signal.ProbeEnded(slot.id, number, outcome)),
                    // the Scheduler refused a timer, say
                    e ->
                        signal.accept(
                            new Signal.ProbeEnded(slot.id, number, ProbeOutcome.NOT_SENT)))));
  }

  /** It told its outcome. */
  void ended(int id) {
    running.remove(id);
  }

  void cancel(int id) {
    Disposable probe = running.remove(id);
    if (probe != null) {
      hands.accept(probe::dispose);
    }
  }

  /** One probe, its preparation included. */
  Mono<ProbeOutcome> probe(Member member, Lateness lateness) {
    Mono<ProbeOutcome> asked = Mono.defer(() -> asked(member, lateness));
    return Mono.defer(member::prepareProbe)
        .<ProbeOutcome>then(Mono.empty())
        .timeout(policy.prepareLimit, scheduler)
        .onErrorReturn(ProbeOutcome.NOT_SENT)
        .switchIfEmpty(asked);
  }

  /** Its time starts here, after the preparation (BT-14). */
  private Mono<ProbeOutcome> asked(Member member, Lateness lateness) {
    long limit = Clock.nanos(policy.probeLimit());
    long end = clock.now() + limit;
    Mono<ProbeOutcome> overdue =
        Mono.fromSupplier(
            () -> {
              if (!Slot.isListening(member)) {
                return ProbeOutcome.NOT_SENT;
              }
              // HE-10: where this timer itself came late an answer may lie unread: it tells
              // nothing. But not twice in a row, or a busy machine would never find a dead member.
              lateness.seen = !lateness.seen && clock.now() - end > limit / 4;
              return lateness.seen ? ProbeOutcome.NOT_SENT : ProbeOutcome.TIMED_OUT;
            });
    return Mono.defer(member::probe)
        .map(ProbeOutcome::of)
        .onErrorReturn(ProbeOutcome.FAILED)
        .defaultIfEmpty(ProbeOutcome.NOT_SENT)
        .timeout(policy.probeLimit(), overdue, scheduler);
  }

  /** Ends all of them. */
  void close() {
    for (Disposable probe : running.values()) {
      hands.accept(probe::dispose);
    }
    running.clear();
  }
}
