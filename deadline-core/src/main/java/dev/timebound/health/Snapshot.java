package dev.timebound.health;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A group's members by what a pick may do with them. Immutable; replaced at each change. */
final class Snapshot<M extends Member> {
  /** In the order they were added. */
  final List<Slot<M>> all;

  /** HEALTHY or SUSPECT. */
  final Slot<M>[] inService;

  final Slot<M>[] halfOpen;

  private final Map<Member, Slot<M>> byMember;

  Snapshot(List<Slot<M>> slots) {
    byMember = new IdentityHashMap<>(slots.size());
    List<Slot<M>> in = new ArrayList<>(slots.size());
    List<Slot<M>> trials = new ArrayList<>(0);
    for (Slot<M> s : slots) {
      byMember.put(s.member, s);
      MemberStatus status = s.status;
      if (status == MemberStatus.HALF_OPEN) {
        trials.add(s);
      } else if (status != MemberStatus.QUARANTINED) {
        in.add(s);
      }
    }
    all = List.copyOf(slots);
    inService = array(in);
    halfOpen = array(trials);
  }

  /** The same members, those that left since apart, by what they are now. */
  Snapshot<M> refreshed() {
    return new Snapshot<>(all.stream().filter(s -> !s.left).toList());
  }

  Slot<M>[] everyone() {
    return array(all);
  }

  @Nullable Slot<M> slotOf(Member member) {
    return byMember.get(member);
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // an array of a generic class is made raw
  private static <M extends Member> Slot<M>[] array(List<Slot<M>> slots) {
    return slots.toArray(new Slot[0]);
  }
}
