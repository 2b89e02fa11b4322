package dev.timebound.fetch.segments;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * The disk failed, or holds what the store does not understand. Names the file; of what is not
 * understood the position, what stands there and what was expected.
 */
public final class SegmentStoreException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  SegmentStoreException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }

  /**
   * @param found what stands there
   */
  static SegmentStoreException at(Path file, long position, String found, String expected) {
    return new SegmentStoreException(
        file + " at " + position + ": " + found + " (expected: " + expected + ")", null);
  }
}
