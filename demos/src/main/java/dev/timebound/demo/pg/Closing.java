package dev.timebound.demo.pg;

import java.time.Duration;
import reactor.core.publisher.Mono;

/** The end of a pool, bounded: one that a fault has brought to nothing may never end by itself. */
final class Closing {
  private static final Duration PATIENCE = Duration.ofSeconds(5);

  private Closing() {}

  static void within(Mono<Void> end) {
    end.timeout(PATIENCE).onErrorComplete().block();
  }
}
