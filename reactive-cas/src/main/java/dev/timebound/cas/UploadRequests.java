package dev.timebound.cas;

import dev.timebound.cas.Chunks.Chunk;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Operators;

/** One attempt's side of an {@link UploadReading}, which alone emits. */
final class UploadRequests implements Subscription {
  private static final AtomicLongFieldUpdater<UploadRequests> WANTED =
      AtomicLongFieldUpdater.newUpdater(UploadRequests.class, "wanted");

  private final CoreSubscriber<? super WriteRequest> subscriber;
  private final String resourceName;
  private volatile long wanted;
  private volatile boolean over;

  /** Null until it has been attached. */
  private volatile @Nullable UploadReading reading;

  private boolean named;
  private long position;

  UploadRequests(
      CoreSubscriber<? super WriteRequest> subscriber, String resourceName, long position) {
    this.subscriber = subscriber;
    this.resourceName = resourceName;
    this.position = position;
  }

  void begin() {
    subscriber.onSubscribe(this);
  }

  void attach(UploadReading to) {
    reading = to;
  }

  /** Where the next request begins. */
  long position() {
    return position;
  }

  boolean isOver() {
    return over;
  }

  boolean wants() {
    return !over && wanted > 0;
  }

  void emit(Chunk chunk, boolean isLast) {
    WriteRequest.Builder request =
        WriteRequest.newBuilder()
            .setWriteOffset(chunk.offset())
            .setFinishWrite(isLast)
            .setData(chunk.data());
    if (!named) {
      named = true;
      request.setResourceName(resourceName);
    }
    position = chunk.end();
    Operators.produced(WANTED, this, 1);
    subscriber.onNext(request.build());
    if (isLast && !over) {
      over = true;
      subscriber.onComplete();
    }
  }

  void fail(Throwable failure) {
    if (!over) {
      over = true;
      subscriber.onError(new SourceException(failure));
    }
  }

  @Override
  public void request(long n) {
    Operators.addCap(WANTED, this, n);
    UploadReading from = reading;
    if (from != null) {
      from.drain();
    }
  }

  @Override
  public void cancel() {
    over = true;
  }
}
