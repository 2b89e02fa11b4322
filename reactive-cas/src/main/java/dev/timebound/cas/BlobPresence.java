package dev.timebound.cas;

import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * What was found out about the presence of blobs (CAS-25). Each that was asked for is exactly one
 * of three: present where a shard has it, missing where its home says so, unknown where its home
 * did not answer and no other shard has it. Immutable.
 */
public final class BlobPresence {
  /** What is known of one blob. */
  public enum State {
    /** A shard has it. */
    PRESENT,
    /** Its home has it not. */
    MISSING,
    /** Its home did not answer, and no shard that did has it. */
    UNKNOWN
  }

  private final Set<Digest> present;
  private final Set<Digest> missing;
  private final Map<Digest, Throwable> unknown;

  /**
   * @param asked all of them; copied
   */
  BlobPresence(Set<Digest> asked, Set<Digest> missing, Map<Digest, Throwable> unknown) {
    this.missing = Collections.unmodifiableSet(missing);
    this.unknown = Collections.unmodifiableMap(unknown);
    Set<Digest> rest = new HashSet<>(asked);
    rest.removeAll(missing);
    rest.removeAll(unknown.keySet());
    this.present = Collections.unmodifiableSet(rest);
  }

  /** Those that a shard has. */
  public Set<Digest> present() {
    return present;
  }

  /** Those that are not there: their homes say so. */
  public Set<Digest> missing() {
    return missing;
  }

  /** Those of which nothing is known, each with its home's error. */
  public Map<Digest, Throwable> unknown() {
    return unknown;
  }

  /** Whether nothing is unknown. */
  public boolean isComplete() {
    return unknown.isEmpty();
  }

  /**
   * What is known of one.
   *
   * @throws IllegalArgumentException where it was not asked for
   */
  public State of(Digest digest) {
    if (present.contains(digest)) {
      return State.PRESENT;
    }
    if (missing.contains(digest)) {
      return State.MISSING;
    }
    if (unknown.containsKey(digest)) {
      return State.UNKNOWN;
    }
    throw new IllegalArgumentException("digest: " + digest + " (expected: one that was asked for)");
  }

  /**
   * Those missing, where that is known of all.
   *
   * @throws UnknownBlobsException where something is unknown
   */
  public Set<Digest> missingOrThrow() {
    if (!unknown.isEmpty()) {
      throw new UnknownBlobsException(unknown, present.size() + missing.size() + unknown.size());
    }
    return missing;
  }

  @Override
  public String toString() {
    return "BlobPresence{present="
        + present.size()
        + ", missing="
        + missing.size()
        + ", unknown="
        + unknown.size()
        + "}";
  }
}
