package dev.timebound.cas;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Of some blobs it could not be found out whether they are there (CAS-25). Its status is {@code
 * UNAVAILABLE}, its cause the first one's; the message names the first few.
 */
public final class UnknownBlobsException extends StatusRuntimeException {
  private static final long serialVersionUID = 1L;
  private static final int NAMED = 3;

  private final transient Map<Digest, Throwable> unknown;

  UnknownBlobsException(Map<Digest, Throwable> unknown, int asked) {
    super(
        Status.UNAVAILABLE
            .withDescription(message(unknown, asked))
            .withCause(unknown.values().iterator().next()));
    this.unknown = unknown;
  }

  private static String message(Map<Digest, Throwable> unknown, int asked) {
    return unknown.size()
        + " of "
        + asked
        + " blobs unknown: "
        + unknown.keySet().stream()
            .limit(NAMED)
            .map(Digest::toString)
            .collect(Collectors.joining(", "))
        + (unknown.size() > NAMED ? ", …" : "")
        + "; "
        + unknown.values().iterator().next().getMessage();
  }

  /** Each of them, with the error of its home. */
  public Map<Digest, Throwable> unknown() {
    return unknown;
  }
}
