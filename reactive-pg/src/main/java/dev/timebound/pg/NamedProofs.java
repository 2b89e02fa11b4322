package dev.timebound.pg;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The proofs of a staleness, as one session's server knows them by name: to plan one takes longer
 * than to run it, and holds up the read's own statement behind it. The first of each staleness is
 * prepared in its own batch, so that it costs no round trip. (PG-10)
 *
 * <p>One proof of a session is under way at a time.
 */
final class NamedProofs {
  /** Stalenesses of one session that get a name: an application has a few. */
  private static final int MOST = 16;

  // guarded by this
  private final Map<Duration, String> names = new HashMap<>();
  private int made;

  /** What the last proof gave a name to; null where it did not, or is known to have. */
  private @Nullable Duration unconfirmed;

  private boolean off;

  /** What to send behind the BEGIN: {@link ProofSql#observation}, by its name where it has one. */
  synchronized String sql(Fence fence, long number, boolean hidesReplayPosition) {
    unconfirmed = null;
    Duration staleness = fence.maxStaleness();
    // a position is another one each time
    boolean named = !off && staleness != null && fence.lsn() == 0;
    String name = named ? names.get(staleness) : null;
    if (name != null) {
      return "EXECUTE " + name;
    }
    String observation = ProofSql.observation(fence, number, hidesReplayPosition);
    if (!named || names.size() == MOST) {
      return observation;
    }
    unconfirmed = staleness;
    // a new one each time: whether the server took that of a proof that failed is not known
    String fresh = name(++made);
    return "PREPARE " + fresh + " AS " + observation + "; EXECUTE " + fresh;
  }

  private static String name(int number) {
    return "timebound_proof_" + number;
  }

  /** The last one was answered. */
  synchronized void ran() {
    if (unconfirmed != null) {
      names.put(unconfirmed, name(made));
      unconfirmed = null;
    }
  }

  /**
   * The last one was refused.
   *
   * @return whether it is worth sending again: the server did not keep to the name, as one behind a
   *     pooler does that lends it anew for each transaction, so that no names are used from now on
   */
  synchronized boolean refused(Throwable e) {
    if (SqlStates.isStale(e)) {
      ran();
    } else if (SqlStates.isStatementName(e) && !off) {
      off = true;
      return true;
    }
    return false;
  }
}
