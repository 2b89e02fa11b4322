package dev.timebound.health;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What is known of the keys of one group: until when each is penalised, by the time of its last
 * failure. All penalties are as long, so the eldest ends first, and it is the one that a full
 * history lets go. No clock, no timer; of one thread.
 */
final class KeyHistory<K> {
  private final Map<K, Long> until = new LinkedHashMap<>();
  private final long penaltyNanos;
  private final int most;

  KeyHistory(long penaltyNanos, int most) {
    this.penaltyNanos = penaltyNanos;
    this.most = most;
  }

  /** The keys that went for it. */
  List<K> failed(K key, long now) {
    until.remove(key);
    until.put(key, now + penaltyNanos);
    List<K> gone = new ArrayList<>(0);
    for (Iterator<K> i = until.keySet().iterator(); until.size() > most; ) {
      gone.add(i.next());
      i.remove();
    }
    return gone;
  }

  void answered(K key) {
    until.remove(key);
  }

  /** The keys whose penalty is over. */
  List<K> expired(long now) {
    List<K> gone = new ArrayList<>(0);
    for (Iterator<Map.Entry<K, Long>> i = until.entrySet().iterator(); i.hasNext(); ) {
      Map.Entry<K, Long> eldest = i.next();
      if (eldest.getValue() > now) {
        break;
      }
      gone.add(eldest.getKey());
      i.remove();
    }
    return gone;
  }

  /** When {@link #expired} is next of use; Long.MAX_VALUE for never. */
  long nextWake() {
    return until.isEmpty() ? Long.MAX_VALUE : until.values().iterator().next();
  }
}
