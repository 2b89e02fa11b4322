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
}
