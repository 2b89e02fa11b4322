package dev.timebound.health;

import org.junit.jupiter.api.Test;

class SkeletonTest {
  @Test
  void builds() {}
}
