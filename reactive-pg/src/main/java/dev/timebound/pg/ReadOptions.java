package dev.timebound.pg;

import java.time.Duration;

/**
 * What one read asks of its route. Immutable; each method gives a copy. The fence of the pipeline
 * ({@link ReadYourWrites}) comes on top of the one set here.
 */
public final class ReadOptions {
  private static final ReadOptions DEFAULTS =
      new ReadOptions(Fence.none(), Duration.ZERO, false, false);

  private final Fence fence;
  private final Duration waitForFence;
  private final boolean maintenance;
  private final boolean onWriter;

  private ReadOptions(Fence fence, Duration waitForFence, boolean maintenance, boolean onWriter) {
    this.fence = fence;
    this.waitForFence = waitForFence;
    this.maintenance = maintenance;
    this.onWriter = onWriter;
  }

  /** No fence, no wait for one, not a maintenance read, on a reader where one serves. */
  public static ReadOptions defaults() {
    return DEFAULTS;
  }

  /** How fresh its reader must be. Default: {@link Fence#none()}. (PG-20) */
  public ReadOptions fence(Fence fence) {
    return new ReadOptions(Settings.required("fence", fence), waitForFence, maintenance, onWriter);
  }

  /**
   * How long a reader behind the fence is waited for before the writer is asked, within the
   * deadline. Default: not at all.
   *
   * @param limit {@code >= 0}
   */
  public ReadOptions waitForFence(Duration limit) {
    return new ReadOptions(
        fence, Settings.notNegative("waitForFence", limit), maintenance, onWriter);
  }

  /**
   * A long background read: given up at its deadline it closes its connection at once, so that its
   * place in the pool is free again though the reader may be frozen. (PG-15a)
   */
  public ReadOptions maintenance() {
    return new ReadOptions(fence, waitForFence, true, onWriter);
  }

  /**
   * On the writer, whatever readers there are: for what only it knows for certain. It takes one of
   * the places that routed reads have there. (PG-32)
   */
  public ReadOptions onWriter() {
    return new ReadOptions(fence, waitForFence, maintenance, true);
  }

  /** {@code ReadOptions(fence within PT2S, waitForFence PT0S, maintenance)}. */
  @Override
  public String toString() {
    return "ReadOptions(fence "
        + fence
        + ", waitForFence "
        + waitForFence
        + (maintenance ? ", maintenance" : "")
        + (onWriter ? ", on the writer)" : ")");
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

  boolean isOnWriter() {
    return onWriter;
  }
}
