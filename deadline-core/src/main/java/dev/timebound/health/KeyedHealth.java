package dev.timebound.health;

import java.util.List;
import java.util.Set;

/**
 * Which of very many things that come and go (partitions, say) have failed lately: those are tried
 * last (HE-13a). It knows a thing by its key and only while it has a history: from a failure until
 * an answer or the end of its penalty. It holds a bounded number of them; beyond it the one whose
 * last report is oldest is forgotten. A thing that does well costs a look-up and no memory.
 *
 * <p>Keys want {@code equals} and {@code hashCode}. Thread-safe and lock-free. Made by {@link
 * HealthEngine#keyed}.
 */
public interface KeyedHealth<K> {
  String name();

  /**
   * CONNECTION and OVERLOAD penalise the key anew, for the whole time; ANSWER is as good as {@link
   * #answered}. A caller's own cancel is reported to nobody (HE-11).
   */
  void failed(K key, FailureKind kind);

  /** The key's penalty is over, where it had one. */
  void answered(K key);

  /** False in a dry run. */
  boolean isPenalised(K key);

  /**
   * The same keys, those without a penalty first, each part in the order given. Not copied where
   * there is nothing to change, as always in a dry run.
   */
  List<K> inOrder(List<K> keys);

  /** Those with a penalty now, the one whose last failure is oldest first; a copy. */
  Set<K> penalised();

  /** How many those are. */
  int size();
}
