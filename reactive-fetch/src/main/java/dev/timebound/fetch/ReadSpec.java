package dev.timebound.fetch;

import java.util.Objects;

/**
 * What is to be read of a partition.
 *
 * @param offset the first that is wanted; the batch that holds it is returned whole
 * @param maxBytes the sum of the batches, {@code >= 0}
 * @param firstOfAnySize the first batch is returned even where it alone is larger (FE-13)
 */
public record ReadSpec(long offset, int maxBytes, boolean firstOfAnySize, Isolation isolation) {
  public ReadSpec {
    Settings.atLeast("maxBytes", maxBytes, 0);
    Objects.requireNonNull(isolation, "isolation");
  }

  /** Whether a batch may follow those returned so far. */
  public boolean admits(long bytesSoFar, int batchSize) {
    return bytesSoFar + batchSize <= maxBytes || (firstOfAnySize && bytesSoFar == 0);
  }
}
