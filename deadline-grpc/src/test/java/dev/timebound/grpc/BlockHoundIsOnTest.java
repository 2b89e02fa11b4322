package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.blockhound.BlockingOperationError;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

class BlockHoundIsOnTest {
  @Test
  @DisplayName("a blocking call on a thread that must not block is found in these tests")
  void finds() {
    Mono<Integer> blocking =
        Mono.fromCallable(
                () -> {
                  Thread.sleep(1);
                  return 1;
                })
            .subscribeOn(Schedulers.parallel());
    assertThatThrownBy(blocking::block).hasCauseInstanceOf(BlockingOperationError.class);
  }
}
