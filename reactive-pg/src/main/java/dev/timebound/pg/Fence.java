package dev.timebound.pg;

import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How fresh a reader must be to serve a read: nothing asked, at least at a position of the
 * write-ahead log, at most so far behind, or both of these. It holds for the very snapshot the read
 * sees; a reader behind it is {@link RouteReason#READER_STALE}. The writer satisfies every fence.
 * Immutable. (PG-20)
 */
public final class Fence {
  private static final Fence NONE = new Fence(0, null);

  /** 0 where no position is asked for. */
  private final long lsn;

  private final @Nullable Duration maxStaleness;

  private Fence(long lsn, @Nullable Duration maxStaleness) {
    this.lsn = lsn;
    this.maxStaleness = maxStaleness;
  }

  /** Any replica will do. */
  public static Fence none() {
    return NONE;
  }

  /**
   * The reader has replayed the log up to there: a position taken on the writer after a write, so
   * that a client reads its own writes.
   *
   * @param lsn as Postgres writes it: {@code 16/B374D848}
   * @throws IllegalArgumentException where it is not of that form
   */
  public static Fence at(String lsn) {
    return at(Lsn.parse(lsn));
  }

  static Fence at(long lsn) {
    return new Fence(lsn, null);
  }

  /**
   * What the reader shows is at most that far behind the writer, by the heartbeat row that the
   * writer's task moves. Time is the servers' own: clocks that differ count as staleness.
   *
   * @param limit {@code >= 1 ms}; less than twice the heartbeat's interval will often be missed
   */
  public static Fence maxStaleness(Duration limit) {
    return new Fence(0, Settings.atLeast("maxStaleness", limit, Duration.ofMillis(1)));
  }

  /** What satisfies both: the later position, the lesser staleness. */
  public Fence and(Fence other) {
    long later = Long.compareUnsigned(lsn, other.lsn) >= 0 ? lsn : other.lsn;
    Duration less = maxStaleness;
    if (less == null || (other.maxStaleness != null && other.maxStaleness.compareTo(less) < 0)) {
      less = other.maxStaleness;
    }
    return new Fence(later, less);
  }

  public boolean isNone() {
    return lsn == 0 && maxStaleness == null;
  }

  long lsn() {
    return lsn;
  }

  @Nullable Duration maxStaleness() {
    return maxStaleness;
  }

  @Override
  public boolean equals(@Nullable Object o) {
    return o instanceof Fence f && f.lsn == lsn && Objects.equals(f.maxStaleness, maxStaleness);
  }

  @Override
  public int hashCode() {
    return Objects.hash(lsn, maxStaleness);
  }

  /** {@code none}, {@code at 16/B374D848}, {@code within PT2S}, or both. */
  @Override
  public String toString() {
    if (isNone()) {
      return "none";
    }
    String at = lsn == 0 ? "" : "at " + Lsn.format(lsn);
    String within = maxStaleness == null ? "" : "within " + maxStaleness;
    return at.isEmpty() || within.isEmpty() ? at + within : at + ", " + within;
  }
}
