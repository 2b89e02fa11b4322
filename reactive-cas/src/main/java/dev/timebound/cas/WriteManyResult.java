package dev.timebound.cas;

import org.jspecify.annotations.Nullable;

/**
 * One blob of {@link CasRing#writeMany}.
 *
 * @param failure as of {@link CasRing#write}; null where its home has it
 */
public record WriteManyResult(Digest digest, @Nullable Throwable failure) {
  /** Whether its home has it. */
  public boolean isOk() {
    return failure == null;
  }
}
