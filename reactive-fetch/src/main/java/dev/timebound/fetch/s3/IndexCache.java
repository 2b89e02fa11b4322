package dev.timebound.fetch.s3;

import dev.timebound.fetch.TopicPartition;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The indexes read or written last, up to so many bytes. Objects never change, so that what is in
 * here holds for as long as the object is there. Thread-safe; the lock is held for a look-up.
 */
final class IndexCache {
  private record Id(TopicPartition partition, long base) {}

  private static final Comparator<Id> ORDER =
      Comparator.comparing((Id id) -> id.partition().topic())
          .thenComparingInt(id -> id.partition().partition())
          .thenComparingLong(Id::base);

  private final TreeMap<Id, ObjectIndex> byBase = new TreeMap<>(ORDER);
  private final Map<Id, ObjectIndex> byUse = new LinkedHashMap<>(16, 0.75f, true);
  private final long most;
  private long weight;

  IndexCache(long mostBytes) {
    this.most = mostBytes;
  }

  /** Of the object that holds an offset. */
  synchronized @Nullable ObjectIndex holding(TopicPartition partition, long offset) {
    Map.Entry<Id, ObjectIndex> floor = byBase.floorEntry(new Id(partition, offset));
    if (floor == null
        || !floor.getKey().partition().equals(partition)
        || floor.getValue().end() <= offset) {
      return null;
    }
    byUse.get(floor.getKey());
    return floor.getValue();
  }

  synchronized void put(TopicPartition partition, ObjectIndex index) {
    Id id = new Id(partition, index.base);
    if (byBase.put(id, index) == null) {
      weight += index.weight();
    }
    byUse.put(id, index);
    var eldest = byUse.entrySet().iterator();
    while (weight > most && eldest.hasNext()) {
      Map.Entry<Id, ObjectIndex> old = eldest.next();
      weight -= old.getValue().weight();
      byBase.remove(old.getKey());
      eldest.remove();
    }
  }

  /** An object was not there any more. */
  synchronized void forget(TopicPartition partition, long base) {
    Id id = new Id(partition, base);
    @Nullable ObjectIndex old = byBase.remove(id);
    if (old != null) {
      weight -= old.weight();
      byUse.remove(id);
    }
  }

  synchronized long weight() {
    return weight;
  }
}
