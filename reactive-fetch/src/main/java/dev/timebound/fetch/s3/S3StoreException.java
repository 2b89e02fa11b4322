package dev.timebound.fetch.s3;

import org.jspecify.annotations.Nullable;

/**
 * What S3 refused, or what an object holds that it should not. The message names the bucket, the
 * key, what was found and what was expected.
 */
public final class S3StoreException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  S3StoreException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
