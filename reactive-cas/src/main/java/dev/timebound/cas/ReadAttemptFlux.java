package dev.timebound.cas;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Flux;

/** Each subscription is the next attempt of one read. */
final class ReadAttemptFlux extends Flux<ByteBuffer> implements Scannable {
  private final BlobRead read;

  ReadAttemptFlux(BlobRead read) {
    this.read = read;
  }

  @Override
  public void subscribe(CoreSubscriber<? super ByteBuffer> actual) {
    actual.onSubscribe(new ReadAttempt(read, actual));
  }

  @Override
  @SuppressWarnings("rawtypes")
  public @Nullable Object scanUnsafe(Attr key) {
    return key == Attr.RUN_STYLE ? Attr.RunStyle.ASYNC : null;
  }
}
