package dev.timebound.demo;

import org.junit.jupiter.api.Test;

class SkeletonTest {
  @Test
  void builds() {}
}
