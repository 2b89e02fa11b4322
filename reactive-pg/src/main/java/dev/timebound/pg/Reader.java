package dev.timebound.pg;

import dev.timebound.health.Member;
import dev.timebound.health.ProbeAnswer;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import reactor.core.publisher.Mono;

/** A reader endpoint, as a member of the health engine's group. (PG-30) */
final class Reader implements Member {
  private static final long TELL_EVERY_SECONDS = 60;

  private final String name;
  private final ReaderPool pool;
  private final AtomicBoolean promoted = new AtomicBoolean();
  private final AtomicLong toldAt = new AtomicLong(-TELL_EVERY_SECONDS);

  Reader(String name, ReaderPool pool) {
    this.name = name;
    this.pool = pool;
  }

  @Override
  public String name() {
    return name;
  }

  ReaderPool pool() {
    return pool;
  }

  /** True where this proof is the first to see its role change that way. (PG-14a) */
  boolean roleSeen(boolean standby) {
    return promoted.compareAndSet(standby, !standby) && !standby;
  }

  /** True once a minute: whether to log what its proofs fail by. */
  boolean mayTell(long nowSeconds) {
    long last = toldAt.get();
    return nowSeconds - last >= TELL_EVERY_SECONDS && toldAt.compareAndSet(last, nowSeconds);
  }

  /**
   * On a connection of its own: those of the pool may hang while new ones get through. A server
   * that refuses it a session has answered, and serves on those that the pool has.
   */
  @Override
  public Mono<ProbeAnswer> probe() {
    return pool.probe()
        .thenReturn(ProbeAnswer.ANSWERED)
        .onErrorReturn(
            e -> SqlStates.refusesSessions(e) && pool.hasConnections(), ProbeAnswer.ANSWERED);
  }
}
