package dev.timebound.cas;

import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** The rings of a test: after it each is closed, and shows that nothing is left of it. */
public final class Rings implements AfterEachCallback {
  private final List<TestRing> made = new ArrayList<>();

  public TestRing of(int shards, UnaryOperator<CasRingBuilder> settings) {
    TestRing ring = TestRing.of(shards, settings);
    made.add(ring);
    return ring;
  }

  @Override
  public void afterEach(ExtensionContext context) {
    made.forEach(TestRing::close);
    made.clear();
  }
}
