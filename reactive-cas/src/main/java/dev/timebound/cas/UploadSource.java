package dev.timebound.cas;

import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * What one write sends: the requests of its attempts, made of one source, which outlives an attempt
 * that breaks. The next attempt goes on with it where the bytes it needs are still held; else the
 * source is subscribed to anew and skipped up to what the server has.
 *
 * <p>One attempt at a time: the next may begin once the one before has been cancelled or has ended.
 */
final class UploadSource {
  private final Publisher<? extends ByteBuffer> content;
  private final Digest digest;
  private final int chunkSize;
  private final int kept;
  private final Context context;

  private volatile @Nullable UploadReading reading;
  private volatile boolean resubscribed;
  private volatile boolean closed;

  /**
   * @param kept bytes of what was sent last that are held for a next attempt, at least
   * @param context what the source sees
   */
  UploadSource(
      Publisher<? extends ByteBuffer> content,
      Digest digest,
      int chunkSize,
      int kept,
      Context context) {
    this.content = content;
    this.digest = digest;
    this.chunkSize = chunkSize;
    this.kept = kept;
    this.context = context;
  }

  /**
   * The requests of one attempt, for one subscriber. Its errors are {@link SourceException}s.
   *
   * @param offset where it begins: what the server has already
   */
  Flux<WriteRequest> requests(String resourceName, long offset) {
    return Flux.from(
        subscriber -> {
          UploadRequests requests =
              new UploadRequests(Operators.toCoreSubscriber(subscriber), resourceName, offset);
          requests.begin();
          UploadReading present = reading;
          if (present == null) {
            begin(requests);
          } else {
            present.serve(requests);
          }
        });
  }

  /** The reading cannot give what this attempt needs: the source is read again. */
  void again(UploadRequests requests) {
    resubscribed = true;
    begin(requests);
  }

  private void begin(UploadRequests requests) {
    UploadReading made =
        new UploadReading(this, new Chunks(digest, chunkSize, kept, requests.position()), context);
    reading = made;
    if (closed) {
      made.stop();
      return;
    }
    content.subscribe(made);
    made.serve(requests);
  }

  /** Whether the source was subscribed to more than once. */
  boolean isResubscribed() {
    return resubscribed;
  }

  /** Ends the source. */
  void close() {
    closed = true;
    UploadReading present = reading;
    if (present != null) {
      present.stop();
    }
  }
}
