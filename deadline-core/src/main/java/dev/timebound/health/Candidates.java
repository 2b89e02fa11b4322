package dev.timebound.health;

import org.jspecify.annotations.Nullable;

/**
 * A cursor over a group's members in the adapter's own order, with the health taken into account
 * (HE-5): healthy ones first, and of those half open each to one caller only, as its trial; then
 * the suspects; then, unless the policy says that the adapter has its own fallback, those out of
 * service. So there is always something to try, and with all out the first of the order is tried
 * first. Each member comes at most once; one that is not in the group not at all. Not thread-safe:
 * it belongs to one request.
 */
public interface Candidates<M extends Member> {
  /** The next member, claimed; null when there is none left. */
  @Nullable Claim<M> next();

  /**
   * A member that {@link #next} gave before, claimed once more whatever its health, for a retry. It
   * counts as a first choice only where it was one, and is no trial. Null where it has left.
   */
  @Nullable Claim<M> again(M member);
}
