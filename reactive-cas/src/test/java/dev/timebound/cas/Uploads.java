package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What the tests of writes have in common. */
final class Uploads {
  static final int CHUNK = 64 << 10;

  private Uploads() {}

  static Status.Code code(Throwable failure) {
    return ((StatusRuntimeException) failure).getStatus().getCode();
  }

  /** The content in buffers of that many bytes, of which each subscription gives all. */
  static Flux<ByteBuffer> pieces(byte[] content, int size) {
    return Flux.range(0, (content.length + size - 1) / size)
        .map(
            i ->
                ByteBuffer.wrap(content, i * size, Math.min(size, content.length - i * size))
                    .slice());
  }

  /** The same, which can be subscribed to once. */
  static Flux<ByteBuffer> once(byte[] content, int size) {
    AtomicInteger subscriptions = new AtomicInteger();
    Flux<ByteBuffer> all = pieces(content, size);
    return Flux.defer(
        () ->
            subscriptions.getAndIncrement() == 0
                ? all
                : Flux.error(new IllegalStateException("can be read once only")));
  }

  static WriteResult written(Mono<WriteResult> write) {
    WriteResult result = write.block(LONG);
    assertThat(result).isNotNull();
    return result;
  }

  /** Lets pauses between calls pass until it has ended. */
  static @Nullable Throwable ended(TestRing ring, Mono<?> write) {
    CompletableFuture<@Nullable Throwable> end = end(write);
    ring.passPauses(end);
    return end.join();
  }

  static Throwable failed(TestRing ring, Mono<?> write) {
    Throwable failure = ended(ring, write);
    if (failure == null) {
      throw new AssertionError("it succeeded");
    }
    return failure;
  }

  static String upload(CasCall call) {
    return call.resourceName().replaceAll(".*uploads/([^/]*)/.*", "$1");
  }
}
