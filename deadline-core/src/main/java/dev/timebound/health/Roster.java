package dev.timebound.health;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Who is in the group and who has left it with claims still open. Changes are rare and take a lock;
 * picks read the snapshot.
 */
final class Roster<M extends Member> {
  private final String group;
  private final Object lock = new Object();

  // under the lock
  private final List<Slot<M>> slots = new ArrayList<>();
  private int lastId;

  private final Map<Integer, Slot<M>> byId = new ConcurrentHashMap<>();
  private final Set<Slot<M>> leaving = ConcurrentHashMap.newKeySet();
  private volatile Snapshot<M> snapshot = new Snapshot<>(List.of());

  Roster(String group) {
    this.group = group;
  }

  Snapshot<M> snapshot() {
    return snapshot;
  }

  /** Null where it has left for good. */
  @Nullable Slot<M> get(int id) {
    return byId.get(id);
  }

  /** {@code joined} runs before anyone can pick it: no report overtakes its joining. */
  void add(M member, Consumer<Slot<M>> joined) {
    String name = Settings.name("member", member.name());
    synchronized (lock) {
      for (Slot<M> s : slots) {
        if (s.name.equals(name)) {
          throw Settings.refused("member", name, "not yet in group " + group);
        }
      }
      Slot<M> slot = new Slot<>(++lastId, member, name);
      byId.put(slot.id, slot);
      joined.accept(slot);
      slots.add(slot);
      snapshot = new Snapshot<>(slots);
    }
  }

  /** The slot, out of the choice from now on; null where the member is not in the group. */
  @Nullable Slot<M> leave(M member) {
    synchronized (lock) {
      for (Slot<M> s : slots) {
        if (s.member == member) {
          leaving.add(s);
          slots.remove(s);
          s.left = true;
          snapshot = new Snapshot<>(slots);
          return s;
        }
      }
      return null;
    }
  }

  /** Among those that left with claims still open. */
  @Nullable Slot<M> leaving(M member) {
    for (Slot<M> s : leaving) {
      if (s.member == member) {
        return s;
      }
    }
    return null;
  }

  void drained(Slot<M> slot) {
    leaving.remove(slot);
  }

  void forget(int id) {
    byId.remove(id);
  }

  /** A status has changed. */
  void regroup() {
    synchronized (lock) {
      snapshot = new Snapshot<>(slots);
    }
  }

  /** Those in the group, and those that left with claims still open. */
  Collection<Slot<M>> watched() {
    if (leaving.isEmpty()) {
      return snapshot.all;
    }
    List<Slot<M>> all = new ArrayList<>(snapshot.all);
    all.addAll(leaving);
    return all;
  }
}
