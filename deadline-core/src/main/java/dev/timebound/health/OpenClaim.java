package dev.timebound.health;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/** A claim: a few fields of its own, and its group for all that is more than an atomic write. */
final class OpenClaim<M extends Member> implements Claim<M>, OpenClaims.Place<OpenClaim<M>> {
  private static final VarHandle ENDED;
  private static final VarHandle WAIT;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      ENDED = lookup.findVarHandle(OpenClaim.class, "ended", boolean.class);
      WAIT = lookup.findVarHandle(OpenClaim.class, "wait", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final Group<M> group;
  final Slot<M> slot;
  final @Nullable FailHandle failHandle;

  /** It is its request's first choice. */
  final boolean first;

  /** Round of the trial it is; 0 for none. */
  final int trial;

  private volatile boolean ended;

  /** Number of the wait that lasts; 0 where none does. One writer. */
  volatile int wait;

  /** Of its writer alone. */
  private int waits;

  // the sampler's own: which wait it saw last, and when first
  int seenWait;
  long seenAt;

  // where it stands among the open ones; written before it stands there
  private OpenClaims.@Nullable Block<OpenClaim<M>> block;
  private int index;

  OpenClaim(
      Group<M> group, Slot<M> slot, @Nullable FailHandle failHandle, boolean first, int trial) {
    this.group = group;
    this.slot = slot;
    this.failHandle = failHandle;
    this.first = first;
    this.trial = trial;
  }

  @Override
  public void at(OpenClaims.Block<OpenClaim<M>> block, int index) {
    this.block = block;
    this.index = index;
  }

  @Override
  public M member() {
    return slot.member;
  }

  @Override
  public void waiting() {
    if (wait == 0 && !ended) {
      int next = waits + 1;
      waits = next == 0 ? 1 : next;
      wait = waits;
      group.someoneWaits();
    }
  }

  @Override
  public void idle() {
    if (wait != 0) {
      // unlike the start of a wait this need not be seen before what this thread does next
      WAIT.setRelease(this, 0);
    }
  }

  @Override
  public void progress() {
    // read before write: a busy member's line stays shared
    if (!slot.progressed) {
      slot.progressed = true;
    }
  }

  @Override
  public boolean succeeded() {
    boolean mine = ends();
    if (mine) {
      group.succeeded(this);
    }
    return mine;
  }

  @Override
  public boolean failed(FailureKind kind, @Nullable Throwable cause) {
    boolean mine = ends();
    if (mine && kind == FailureKind.ANSWER) {
      group.succeeded(this);
    } else if (mine) {
      group.failed(this, kind, cause);
    }
    return mine;
  }

  @Override
  public boolean cancelled() {
    boolean mine = ends();
    if (mine) {
      group.cancelled(this);
    }
    return mine;
  }

  @Override
  public boolean isEnded() {
    return ended;
  }

  @Override
  public boolean isTrial() {
    return trial != 0;
  }

  /** As in {@code claim on bigtable-3, open} or {@code … ended}. */
  @Override
  public String toString() {
    return "claim on " + slot.name + (ended ? ", ended" : ", open");
  }

  /** True for the one that ends it. */
  boolean ends() {
    return !ended && ENDED.compareAndSet(this, false, true);
  }

  /** Takes it out of the open ones; by the one that ended it. */
  void forget() {
    OpenClaims.Block<OpenClaim<M>> b = block;
    if (b != null) {
      b.cells.set(index, null);
    }
  }
}
