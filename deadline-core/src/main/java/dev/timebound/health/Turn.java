package dev.timebound.health;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One step of the {@link Machine} while it is made: the copy it works on. Never leaves the step.
 */
final class Turn {
  final long now;

  /** The sampler's clock. */
  long measured;

  Replacement replacement;

  private final List<MemberState> members;
  private final List<Effect> effects = new ArrayList<>(4);

  Turn(GroupState state, long now) {
    this.now = now;
    this.measured = state.measured();
    this.replacement = state.replacement();
    this.members = new ArrayList<>(state.members());
  }

  @Nullable MemberState get(int id) {
    int i = index(id);
    return i < 0 ? null : members.get(i);
  }

  MemberState mustGet(int id) {
    return Objects.requireNonNull(get(id));
  }

  void put(MemberState m) {
    int i = index(m.id());
    if (i < 0) {
      members.add(-i - 1, m);
    } else {
      members.set(i, m);
    }
  }

  void remove(int id) {
    int i = index(id);
    if (i >= 0) {
      members.remove(i);
    }
  }

  /** As they are now: the loop over it may put. */
  List<MemberState> all() {
    return List.copyOf(members);
  }

  /** Members in the group. */
  int size() {
    int n = 0;
    for (MemberState m : members) {
      n += m.left() ? 0 : 1;
    }
    return n;
  }

  /** Members in the group, this one apart, that are suspect or out. */
  int troubledBeside(MemberState one) {
    int n = 0;
    for (MemberState m : members) {
      if (!m.left() && m.id() != one.id() && m.status() != MemberStatus.HEALTHY) {
        n++;
      }
    }
    return n;
  }

  void effect(Effect effect) {
    effects.add(effect);
  }

  /** Tells of a change, where the member is in the group. */
  void changed(
      MemberState m, MemberStatus from, HealthReason reason, String figure, HealthPolicy policy) {
    if (!m.left() && (from != m.status() || reason == HealthReason.CAP_REACHED)) {
      String group = Figures.group(this, m, reason, policy);
      effects.add(new Effect.Changed(m.id(), m.name(), from, m.status(), reason, figure, group));
    }
  }

  /** Tells of what is no change of its status. */
  void tell(MemberState m, HealthReason reason, String figure, HealthPolicy policy) {
    effects.add(told(m, reason, figure, policy));
  }

  Effect.Changed told(MemberState m, HealthReason reason, String figure, HealthPolicy policy) {
    String group = Figures.group(this, m, reason, policy);
    return new Effect.Changed(m.id(), m.name(), m.status(), m.status(), reason, figure, group);
  }

  Machine.Step done() {
    return new Machine.Step(new GroupState(members, measured, replacement), List.copyOf(effects));
  }

  private int index(int id) {
    return GroupState.index(members, id);
  }
}
