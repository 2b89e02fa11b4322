package dev.timebound.health;

import org.jspecify.annotations.Nullable;

/**
 * A cursor over a group's members in the adapter's own order, with the health taken into account:
 * members out of service are skipped, a half-open one is given to one caller only, and when none is
 * in service the first of the order is given all the same. Each member comes at most once. Not
 * thread-safe: it belongs to one request.
 */
public interface Candidates<M extends Member> {
  /** The next member, claimed; null when there is none left. */
  @Nullable Claim<M> next();
}
