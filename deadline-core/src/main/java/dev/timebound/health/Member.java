package dev.timebound.health;

import reactor.core.publisher.Mono;

/**
 * One of the things a group chooses among: a channel, a shard, a replica. Implemented by the
 * adapter.
 */
public interface Member {

  /**
   * Name in events, meters and log lines; unique within its group, stable for the member's life.
   */
  String name();

  /**
   * What a probe needs before its own time limit starts, credentials say. Empty when ready. An
   * error, or no completion within the policy's bound for it, means that the probe could not be
   * sent: it counts for nothing.
   */
  default Mono<Void> prepareProbe() {
    return Mono.empty();
  }

  /**
   * Asks the backend whether this very member lives. Completes with the answer; an error counts as
   * {@link ProbeAnswer#CONNECTION_FAILED}. The engine bounds it in time and cancels it when the
   * limit passes. It is subscribed on the engine's Scheduler, from where the group's callbacks come
   * too: work that blocks belongs elsewhere, by {@code subscribeOn}.
   */
  Mono<ProbeAnswer> probe();

  /**
   * Makes a member to take this one's place: of the type that its group holds, with a name of its
   * own, and not in the group. Asked where the policy replaces repeat offenders (HE-7), at most
   * once at a time in a group, and bounded by the policy. The engine has the new one prepared and
   * probed as any; once it has answered it joins, and this one leaves and is told {@link
   * #replaced}. Where it is not wanted in the end it is told {@link #discarded}. When cancelled
   * before it has given one, it releases what it has made itself. Empty, the default: it cannot be
   * replaced.
   */
  default Mono<? extends Member> replacement() {
    return Mono.empty();
  }

  /**
   * A replacement has taken this member's place: it has left its group and gets nothing new. Its
   * open requests run on. Called once, on the engine's Scheduler, as all callbacks; must not block.
   *
   * @param by the new one, which is in the group
   * @param ended completes when the last open claim on this one has ended: then it can be closed
   */
  default void replaced(Member by, Mono<Void> ended) {}

  /**
   * This member was made by another's {@link #replacement} and does not join: it never answered, or
   * the other one left meanwhile. Called once; here it is closed.
   */
  default void discarded() {}

  /**
   * Whether this side would notice what the member sends, now. False where it could not, since the
   * event loop that reads from it is held up, say: a wait that passes meanwhile starts anew and is
   * nobody's silence, and a probe whose limit passes meanwhile counts for nothing. Asked for
   * members on which someone waits, from the engine's own worker: must return at once.
   */
  default boolean isListening() {
    return true;
  }
}
