package dev.timebound.health;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** All members of a group, those that have left but are still watched included. Immutable. */
record GroupState(List<MemberState> members) {
  static final GroupState EMPTY = new GroupState(List.of());

  GroupState {
    members = List.copyOf(members);
  }

  @Nullable MemberState get(int id) {
    for (MemberState m : members) {
      if (m.id() == id) {
        return m;
      }
    }
    return null;
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
