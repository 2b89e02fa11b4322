package dev.timebound.fetch;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which stalls are told: of each partition one in a while, with the number of those that were not
 * (FE-23). Of bounded size: beyond it the partition told of longest ago is forgotten. No clock.
 */
final class StallLog {
  /** It is told now, and none was left out since the last time. */
  static final long NONE_LEFT_OUT = 0;

  /** It is not told. */
  static final long NOT_TOLD = -1;

  private static final int MOST = 10_000;

  private static final class Told {
    private final long at;
    private long leftOut;

    Told(long at) {
      this.at = at;
    }
  }

  private final long every;
  private final Map<TopicPartition, Told> told = new LinkedHashMap<>();

  StallLog(long everyNanos) {
    this.every = everyNanos;
  }

  /** How many were left out since the last one told; {@link #NOT_TOLD} where this one is, too. */
  synchronized long stalled(TopicPartition partition, long now) {
    Told last = told.get(partition);
    if (last != null && now - last.at < every) {
      last.leftOut++;
      return NOT_TOLD;
    }
    told.remove(partition);
    told.put(partition, new Told(now));
    if (told.size() > MOST) {
      Iterator<?> eldest = told.keySet().iterator();
      eldest.next();
      eldest.remove();
    }
    return last == null ? NONE_LEFT_OUT : last.leftOut;
  }
}
