package dev.timebound.deadline;

import org.junit.jupiter.api.Test;

class SkeletonTest {
  @Test
  void builds() {}
}
