package dev.timebound.cas;

/**
 * What is to be written could not be had: its source failed, or its bytes are not the digest's. It
 * says nothing of the shard and nothing mends it; its cause is what the caller gets.
 */
final class SourceException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final Throwable failure;

  SourceException(Throwable failure) {
    super(failure.getMessage(), failure, false, false);
    this.failure = failure;
  }

  Throwable failure() {
    return failure;
  }
}
