package dev.timebound.cas;

import dev.timebound.cas.wire.RemoteExecution;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BinaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * What a shard's answer about many blobs says of each (CAS-25, CAS-31). What is no digest in it
 * says nothing, and takes nothing from what is said of the others.
 *
 * @param <T> what is said of one
 */
final class AnswerByDigest<T> {
  /** Of what a server sends, as much as an error repeats. */
  private static final int MOST_WORDS = 200;

  private final Shard shard;
  private final DigestFunction function;
  private final Map<Digest, T> said = new HashMap<>();

  /** The first that is no digest, and what was expected. */
  private @Nullable IllegalArgumentException malformed;

  AnswerByDigest(Shard shard, DigestFunction function) {
    this.shard = shard;
    this.function = function;
  }

  /**
   * @param both of two things that are said of one blob, which counts
   */
  void add(RemoteExecution.Digest digest, T what, BinaryOperator<T> both) {
    try {
      said.merge(Digest.of(digest.getHash(), digest.getSizeBytes(), function), what, both);
    } catch (IllegalArgumentException e) {
      malformed = malformed == null ? e : malformed;
    }
  }

  /** Null where nothing is said of it. */
  @Nullable T get(Digest digest) {
    return said.get(digest);
  }

  Set<Digest> digests() {
    return said.keySet();
  }

  boolean hasMalformed() {
    return malformed != null;
  }

  /**
   * INTERNAL, with the first malformed digest where there is one.
   *
   * @param what is wrong with the answer
   */
  StatusRuntimeException error(String what) {
    IllegalArgumentException first = malformed;
    return Status.INTERNAL
        .withDescription(shard + ": " + what + (first == null ? "" : ", and has " + words(first)))
        .withCause(first)
        .asRuntimeException();
  }

  private static String words(IllegalArgumentException malformed) {
    String words = "what is no digest: " + malformed.getMessage();
    return words.length() <= MOST_WORDS
        ? words
        : words.substring(0, MOST_WORDS / 2)
            + "…"
            + words.substring(words.length() - MOST_WORDS / 2);
  }

  /** The answer to a batch says nothing of one of its blobs. */
  StatusRuntimeException leftOut(Digest digest) {
    return error("the answer to a batch leaves out " + digest);
  }
}
