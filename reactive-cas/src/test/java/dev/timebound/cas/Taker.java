package dev.timebound.cas;

import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;

/** Takes what it is told to, and keeps it. */
final class Taker extends BaseSubscriber<ByteBuffer> {
  final List<ByteBuffer> pieces = new CopyOnWriteArrayList<>();
  final CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();

  @Override
  protected void hookOnSubscribe(Subscription subscription) {
    // asks when it is told to
  }

  @Override
  protected void hookOnNext(ByteBuffer piece) {
    pieces.add(piece);
  }

  @Override
  protected void hookOnError(Throwable failure) {
    end.complete(failure);
  }

  @Override
  protected void hookOnComplete() {
    end.complete(null);
  }
}
