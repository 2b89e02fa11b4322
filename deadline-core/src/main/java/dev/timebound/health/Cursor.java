package dev.timebound.health;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Healthy members and free trials in the given order, then the suspects, then those out of service,
 * each once.
 */
final class Cursor<M extends Member> implements Candidates<M> {
  private final Group<M> group;
  private final @Nullable FailHandle failHandle;
  private final Iterator<? extends M> order;
  private final Deque<Slot<M>> suspects = new ArrayDeque<>(0);
  private final Deque<Slot<M>> out = new ArrayDeque<>(0);

  /** The first one given. */
  private @Nullable Slot<M> first;

  Cursor(Group<M> group, List<? extends M> order, @Nullable FailHandle failHandle) {
    this.group = group;
    this.failHandle = failHandle;
    this.order = order.iterator();
  }

  @Override
  public @Nullable Claim<M> next() {
    while (order.hasNext()) {
      Slot<M> slot = group.snapshot().slotOf(order.next());
      Claim<M> claim = slot == null ? null : tryInService(slot);
      if (claim != null) {
        return claim;
      }
    }
    while (!suspects.isEmpty()) {
      Slot<M> slot = suspects.remove();
      Claim<M> claim = claim(slot, 0, false);
      if (claim != null) {
        return claim;
      }
      out.add(slot);
    }
    while (!out.isEmpty() && !group.hasOwnFallback()) {
      Claim<M> claim = claim(out.remove(), 0, true);
      if (claim != null) {
        return claim;
      }
    }
    return null;
  }

  @Override
  public @Nullable Claim<M> again(M member) {
    Slot<M> slot = group.snapshot().slotOf(member);
    return slot == null ? null : claim(slot, 0, true);
  }

  private @Nullable Claim<M> tryInService(Slot<M> slot) {
    Claim<M> claim = null;
    switch (slot.status) {
      case HEALTHY:
        claim = claim(slot, 0, false);
        break;
      case HALF_OPEN:
        claim = slot.takeTrial() ? claim(slot, slot.round, false) : null;
        break;
      case SUSPECT:
        suspects.add(slot);
        return null;
      case QUARANTINED:
        break;
    }
    if (claim == null) {
      out.add(slot);
    }
    return claim;
  }

  private @Nullable Claim<M> claim(Slot<M> slot, int trial, boolean isOut) {
    slot.claim();
    boolean isFirst = first == null || first == slot;
    Claim<M> claim = group.register(slot, failHandle, isFirst, trial, isOut);
    if (first == null && claim != null) {
      first = slot;
    }
    return claim;
  }
}
