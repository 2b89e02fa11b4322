package dev.timebound.bench;

import org.junit.jupiter.api.Test;

class SkeletonTest {
  @Test
  void builds() {}
}
