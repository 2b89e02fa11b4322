package dev.timebound.health;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import reactor.core.publisher.Sinks;

/**
 * A member's place in its group: what picks and reports touch without a lock. Status, penalty and
 * the rest are copies of what the machine decided.
 */
final class Slot<M extends Member> {
  static final int NO_TRIAL = 0;
  static final int TRIAL_FREE = 1;
  static final int TRIAL_TAKEN = 2;

  private static final VarHandle OPEN;
  private static final VarHandle TRIAL;
  private static final VarHandle LEFT;
  private static final VarHandle GONE;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      OPEN = lookup.findVarHandle(Slot.class, "open", int.class);
      TRIAL = lookup.findVarHandle(Slot.class, "trial", int.class);
      LEFT = lookup.findVarHandle(Slot.class, "left", boolean.class);
      GONE = lookup.findVarHandle(Slot.class, "gone", boolean.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  final int id;
  final M member;
  final String name;
  final OpenClaims<OpenClaim<M>> claims = new OpenClaims<>();

  /** Completes when it has left and its last claim has ended. */
  final Sinks.Empty<Void> drained = Sinks.empty();

  /** Claims not ended. */
  volatile int open;

  /** The penalty. */
  volatile int extra;

  volatile MemberStatus status = MemberStatus.HEALTHY;

  /** Number of the trial that HALF_OPEN offers. */
  volatile int round;

  volatile int trial;

  /** A success would change something. */
  volatile boolean watched;

  /** Something was received since the last tick. */
  volatile boolean progressed;

  final Lateness lateness = new Lateness();

  volatile boolean left;
  private volatile boolean gone;

  Slot(int id, M member, String name) {
    this.id = id;
    this.member = member;
    this.name = name;
  }

  /** The member's own word; one that throws is listened to. */
  static boolean isListening(Member member) {
    try {
      return member.isListening();
    } catch (RuntimeException e) {
      return true;
    }
  }

  int load() {
    return open + extra;
  }

  boolean claimAt(int seen) {
    return OPEN.compareAndSet(this, seen, seen + 1);
  }

  void claim() {
    OPEN.getAndAdd(this, 1);
  }

  /** The claims left. */
  int release() {
    return (int) OPEN.getAndAdd(this, -1) - 1;
  }

  boolean takeTrial() {
    return trial == TRIAL_FREE && TRIAL.compareAndSet(this, TRIAL_FREE, TRIAL_TAKEN);
  }

  /** True once, for who takes it out of the group. */
  boolean leave() {
    return LEFT.compareAndSet(this, false, true);
  }

  boolean isGone() {
    return gone;
  }

  /** True once, for who is to tell that it has left for good. */
  boolean go() {
    return GONE.compareAndSet(this, false, true);
  }
}
