package dev.timebound.grpc;

import org.junit.jupiter.api.Test;

class SkeletonTest {
  @Test
  void builds() {}
}
