package dev.timebound.health;

import static dev.timebound.health.Clock.NEVER;

/**
 * Which member of a group is being replaced, and when one may be again.
 *
 * @param running number of the replacement under way; 0 for none
 * @param last number of the last one begun
 * @param member id of the one that is being replaced; meant only while one is under way
 * @param spentAt when the last permission was spent; NEVER where none was
 * @param before the same before the one under way: what it falls back to where that one comes to
 *     nothing by no fault of its own
 */
record Replacement(int running, int last, int member, long spentAt, long before) {
  static final Replacement NONE = new Replacement(0, 0, 0, NEVER, NEVER);

  Replacement begun(int id, long now) {
    return new Replacement(last + 1, last + 1, id, now, spentAt);
  }

  /** The permission is spent. */
  Replacement ended(long spentAt) {
    return new Replacement(0, last, 0, spentAt, spentAt);
  }

  /** As if it had never begun. */
  Replacement undone() {
    return ended(before);
  }

  boolean isOf(int id) {
    return running != 0 && member == id;
  }
}
