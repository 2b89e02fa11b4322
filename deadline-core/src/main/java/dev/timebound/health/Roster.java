package dev.timebound.health;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Who is in the group and who has left it with claims still open. Picks read the snapshot; changes
 * replace it by compare-and-set, each made from the statuses as they are, so that the last one made
 * knows them all.
 */
final class Roster<M extends Member> {
  private static final VarHandle SNAPSHOT;

  static {
    try {
      SNAPSHOT = MethodHandles.lookup().findVarHandle(Roster.class, "snapshot", Snapshot.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final String group;
  private final AtomicInteger ids = new AtomicInteger();
  private volatile Snapshot<M> snapshot = new Snapshot<>(List.of());

  /** Names in use by those in the group. */
  private final Map<String, Slot<M>> names = new ConcurrentHashMap<>();

  private final Map<Integer, Slot<M>> byId = new ConcurrentHashMap<>();
  private final Set<Slot<M>> leaving = ConcurrentHashMap.newKeySet();

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
    Slot<M> slot = new Slot<>(ids.incrementAndGet(), member, name);
    if (names.putIfAbsent(name, slot) != null) {
      throw taken(name);
    }
    byId.put(slot.id, slot);
    joined.accept(slot);
    regroup(
        all -> {
          List<Slot<M>> more = new ArrayList<>(all);
          more.add(slot);
          return more;
        });
  }

  /** The name of one that is to join later; refused where it could not now. */
  String nameOfNew(Member member) {
    String name = Settings.name("member", member.name());
    if (names.containsKey(name)) {
      throw taken(name);
    }
    return name;
  }

  private IllegalArgumentException taken(String name) {
    return Settings.refused("member", name, "not yet in group " + group);
  }

  /**
   * Puts a new member in an old one's place, in one change: there is never a moment with neither.
   * False where the old one has left already, or the new one's name is taken.
   */
  boolean replace(Slot<M> old, M by, String name, Consumer<Slot<M>> joined) {
    Slot<M> slot = new Slot<>(ids.incrementAndGet(), by, name);
    if (names.putIfAbsent(name, slot) != null) {
      return false;
    }
    if (!out(old)) {
      names.remove(name, slot);
      return false;
    }
    byId.put(slot.id, slot);
    joined.accept(slot);
    regroup(all -> all.stream().map(s -> s == old ? slot : s).toList());
    names.remove(old.name, old);
    return true;
  }

  /** The slot, out of the choice from now on; null where the member is not in the group. */
  @Nullable Slot<M> leave(M member) {
    Slot<M> slot = snapshot().slotOf(member);
    return slot != null && leave(slot) ? slot : null;
  }

  /** False where it has left already. */
  boolean leave(Slot<M> slot) {
    if (!out(slot)) {
      return false;
    }
    regroup(all -> all.stream().filter(s -> s != slot).toList());
    names.remove(slot.name, slot);
    return true;
  }

  /** True for the one who takes it out; from then on it is among those that leave. */
  private boolean out(Slot<M> slot) {
    leaving.add(slot); // before: none of its claims may be overlooked
    if (slot.leave()) {
      return true;
    }
    if (slot.isGone()) { // it was seen drained before it was added here once more
      leaving.remove(slot);
    }
    return false;
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
    regroup(all -> all);
  }

  private void regroup(UnaryOperator<List<Slot<M>>> change) {
    Snapshot<M> was;
    do {
      was = snapshot;
    } while (!SNAPSHOT.compareAndSet(this, was, new Snapshot<>(change.apply(was.all))));
  }

  /** Those in the group, and those that left with claims still open. */
  Collection<Slot<M>> watched() {
    List<Slot<M>> in = snapshot().all;
    if (leaving.isEmpty()) {
      return in;
    }
    // one that leaves right now may be in both
    Set<Slot<M>> all = new LinkedHashSet<>(in);
    all.addAll(leaving);
    return all;
  }
}
