package dev.timebound.cas;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;

/**
 * Bytes are not those that their digest names (CAS-30). Its status is {@code DATA_LOSS}; the
 * message names the digest and what was found. Asking again can help only where another server
 * answers.
 */
public final class DataLossException extends StatusRuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient Digest digest;

  private DataLossException(Digest digest, String found) {
    this(digest, Status.DATA_LOSS.withDescription("digest: " + digest + " (" + found + ")"));
  }

  private DataLossException(Digest digest, Status status) {
    super(status);
    this.digest = digest;
  }

  static DataLossException tooLong(Digest expected) {
    return new DataLossException(expected, "found: more than " + expected.sizeBytes() + " bytes");
  }

  static DataLossException corrupt(Digest expected, Throwable cause) {
    return new DataLossException(
        expected,
        Status.DATA_LOSS
            .withDescription(
                "digest: " + expected + " (found: no zstd, " + cause.getMessage() + ")")
            .withCause(cause));
  }

  static DataLossException mismatch(Digest expected, Digest found) {
    return new DataLossException(expected, "found: " + found);
  }

  /** The digest that was expected. */
  public Digest digest() {
    return digest;
  }
}
