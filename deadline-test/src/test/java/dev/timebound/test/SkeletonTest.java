package dev.timebound.test;

import org.junit.jupiter.api.Test;

class SkeletonTest {
  @Test
  void builds() {}
}
