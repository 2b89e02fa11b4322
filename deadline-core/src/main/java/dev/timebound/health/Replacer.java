package dev.timebound.health;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Has a member made that is to take another's place, and probes it until it answers or the limit
 * passes (HE-7). One at a time. Called from the group's drain; the members' code is not.
 */
final class Replacer<M extends Member> {
  private final HealthPolicy policy;
  private final Scheduler scheduler;

  /** Run foreign code: where the Scheduler still takes it; in any case. */
  private final Consumer<Runnable> later;

  private final Consumer<Runnable> surely;
  private final Consumer<Object> signal;
  private final BiFunction<Member, Lateness, Mono<ProbeOutcome>> probe;
  private final Predicate<Member> known;

  /** The name it would join under; throws where it cannot. */
  private final Function<Member, String> named;

  private final Backoff backoff;

  /** The drain's own. */
  private @Nullable Attempt<M> attempt;

  Replacer(
      HealthPolicy policy,
      Backoff backoff,
      Scheduler scheduler,
      Consumer<Runnable> later,
      Consumer<Runnable> surely,
      Consumer<Object> signal,
      BiFunction<Member, Lateness, Mono<ProbeOutcome>> probe,
      Predicate<Member> known,
      Function<Member, String> named) {
    this.policy = policy;
    this.backoff = backoff;
    this.scheduler = scheduler;
    this.later = later;
    this.surely = surely;
    this.signal = signal;
    this.probe = probe;
    this.known = known;
    this.named = named;
  }

  void start(Slot<M> slot, int number) {
    Attempt<M> begun = new Attempt<>(number);
    attempt = begun;
    Mono<Signal.Prepared> run = prepare(slot, begun);
    later.accept(() -> begun.subscription.replace(run.subscribe(signal::accept)));
  }

  private Mono<Signal.Prepared> prepare(Slot<M> slot, Attempt<M> begun) {
    Duration limit = policy.replaceLimit;
    return Mono.defer(slot.member::replacement)
        .<Member>map(fresh -> fresh)
        .doOnNext(fresh -> hold(begun, fresh))
        .flatMap(fresh -> answered(fresh, begun).thenReturn(begun.named(named.apply(fresh))))
        .map(name -> new Signal.Prepared(slot.id, begun.number, ReplacementOutcome.READY, name))
        .defaultIfEmpty(
            new Signal.Prepared(
                slot.id, begun.number, ReplacementOutcome.NONE, "it has no replacement"))
        .timeout(
            limit, Mono.fromSupplier(() -> failed(slot, begun, "not ready in " + limit)), scheduler)
        .onErrorResume(e -> Mono.just(failed(slot, begun, e.toString())));
  }

  private static Signal.Prepared failed(Slot<?> slot, Attempt<?> begun, String why) {
    return new Signal.Prepared(
        slot.id, begun.number, ReplacementOutcome.FAILED, "its replacement: " + why);
  }

  /** It must be one that is nowhere in use: it may be discarded. */
  private void hold(Attempt<M> begun, Member fresh) {
    if (known.test(fresh)) {
      throw new IllegalStateException(fresh.name() + " is in the group already");
    }
    begun.hold(fresh, surely);
  }

  private Mono<ProbeOutcome> answered(Member fresh, Attempt<M> begun) {
    Lateness lateness = new Lateness();
    return Mono.defer(() -> probe.apply(fresh, lateness))
        .filter(outcome -> outcome == ProbeOutcome.ANSWERED)
        .repeatWhenEmpty(
            tries ->
                tries.concatMap(
                    n -> {
                      long pause = backoff.nanos(n.intValue() + 1, 0, begun.number);
                      return Mono.delay(Duration.ofNanos(pause), scheduler);
                    }));
  }

  /**
   * A new member that has answered.
   *
   * @param name asked for once, so that what joins is what was looked at
   */
  record Ready<M extends Member>(M member, String name) {}

  /** The one that is ready, the group's from now on; null where it is not wanted any more. */
  @SuppressWarnings("unchecked") // Member.replacement's contract
  @Nullable Ready<M> take(int number) {
    Attempt<M> ready = ended(number);
    Member member = ready == null ? null : ready.take();
    return ready == null || member == null ? null : new Ready<>((M) member, ready.name);
  }

  /** Lets go of what is being made, or is ready. */
  void discard(int number) {
    Attempt<M> unwanted = ended(number);
    if (unwanted != null) {
      surely.accept(() -> unwanted.close(surely));
    }
  }

  private @Nullable Attempt<M> ended(int number) {
    Attempt<M> was = attempt;
    if (was == null || was.number != number) {
      return null;
    }
    attempt = null;
    return was;
  }

  void close() {
    if (attempt != null) {
      discard(attempt.number);
    }
  }

  /** One replacement in the making; whatever races, what was made is taken once or discarded. */
  private static final class Attempt<M extends Member> {
    private static final Object CLOSED = new Object();

    final int number;
    final Disposable.Swap subscription = Disposables.swap();

    /** Of the new member; blank until it is known. */
    volatile String name = "";

    /** Null, the new member, or closed. */
    private final AtomicReference<@Nullable Object> fresh = new AtomicReference<>();

    Attempt(int number) {
      this.number = number;
    }

    void hold(Member made, Consumer<Runnable> surely) {
      if (!fresh.compareAndSet(null, made)) {
        surely.accept(made::discarded);
      }
    }

    String named(String its) {
      name = its;
      return its;
    }

    @Nullable Member take() {
      return fresh.getAndSet(CLOSED) instanceof Member made ? made : null;
    }

    void close(Consumer<Runnable> surely) {
      subscription.dispose();
      Member made = take();
      if (made != null) {
        surely.accept(made::discarded);
      }
    }
  }
}
