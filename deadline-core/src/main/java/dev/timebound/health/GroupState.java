package dev.timebound.health;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * All members of a group, those that have left but are still watched included, by ascending id.
 * Immutable.
 *
 * @param measured the sampler's clock at the last tick
 */
record GroupState(List<MemberState> members, long measured, Replacement replacement) {
  static final GroupState EMPTY = new GroupState(List.of(), 0, Replacement.NONE);

  GroupState {
    members = List.copyOf(members);
  }

  @Nullable MemberState get(int id) {
    int i = index(members, id);
    return i < 0 ? null : members.get(i);
  }

  /** Where it is; -1 - (where it would be) where it is not. */
  static int index(List<MemberState> members, int id) {
    int low = 0;
    int high = members.size() - 1;
    while (low <= high) {
      int mid = (low + high) >>> 1;
      int at = members.get(mid).id();
      if (at == id) {
        return mid;
      }
      if (at < id) {
        low = mid + 1;
      } else {
        high = mid - 1;
      }
    }
    return -1 - low;
  }

  boolean hasSuspect() {
    for (MemberState m : members) {
      if (m.status() == MemberStatus.SUSPECT) {
        return true;
      }
    }
    return false;
  }
}
