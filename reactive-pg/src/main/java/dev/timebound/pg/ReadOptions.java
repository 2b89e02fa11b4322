package dev.timebound.pg;

import java.time.Duration;

/**
 * What one read asks of its route. Immutable; each method gives a copy. The fence of the pipeline
 * ({@link ReadYourWrites}) comes on top of the one set here.
 */
public final class ReadOptions {
  private static final ReadOptions DEFAULTS = new ReadOptions(Fence.none(), Duration.ZERO, false);

  private final Fence fence;
  private final Duration waitForFence;
  private final boolean maintenance;

  private ReadOptions(Fence fence, Duration waitForFence, boolean maintenance) {
    this.fence = fence;
    this.waitForFence = waitForFence;
    this.maintenance = maintenance;
  }

  /** No fence, no wait for one, not a maintenance read. */
  public static ReadOptions defaults() {
    return DEFAULTS;
  }

  /** How fresh its reader must be. Default: {@link Fence#none()}. (PG-20) */
  public ReadOptions fence(Fence fence) {
    return new ReadOptions(Settings.required("fence", fence), waitForFence, maintenance);
  }

  /**
   * How long a reader behind the fence is waited for before the writer is asked, within the
   * deadline. Default: not at all.
   *
   * @param limit {@code >= 0}
   */
  public ReadOptions waitForFence(Duration limit) {
    return new ReadOptions(fence, Settings.notNegative("waitForFence", limit), maintenance);
  }

  /**
   * A long background read: given up at its deadline it closes its connection at once, so that its
   * place in the pool is free again though the reader may be frozen. (PG-15a)
   */
  public ReadOptions maintenance() {
    return new ReadOptions(fence, waitForFence, true);
  }

  /** {@code ReadOptions(fence within PT2S, waitForFence PT0S, maintenance)}. */
  @Override
  public String toString() {
    return "ReadOptions(fence "
        + fence
        + ", waitForFence "
        + waitForFence
        + (maintenance ? ", maintenance)" : ")");
  }

  Fence fence() {
    return fence;
  }

  Duration waitForFence() {
    return waitForFence;
  }

  boolean isMaintenance() {
    return maintenance;
  }
}
