package dev.timebound.bigtable;

import org.junit.jupiter.api.Test;

class SkeletonTest {
  @Test
  void builds() {}
}
