package dev.timebound.cas;

import dev.timebound.cas.Chunks.Chunk;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Exceptions;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * One subscription of what is written. It asks for one buffer at a time, and only for an attempt
 * that wants a request; it does not end with an attempt, only with the write.
 *
 * <p>Source and attempt meet in the drain loop, whose owner raised {@link #wip} from 0.
 */
final class UploadReading implements CoreSubscriber<ByteBuffer> {
  private final UploadSource source;
  private final Context context;
  private final AtomicInteger wip = new AtomicInteger();
  private final AtomicReference<@Nullable Subscription> upstream = new AtomicReference<>();

  /** The one buffer that was asked for. */
  private final AtomicReference<@Nullable ByteBuffer> arrived = new AtomicReference<>();

  private volatile @Nullable UploadRequests attempt;

  /** A buffer was asked for, and has not come. */
  private final AtomicBoolean asked = new AtomicBoolean();

  private volatile boolean complete;
  private volatile @Nullable Throwable failure;
  private volatile boolean stopped;

  /** The source's own end has come: there is nothing to cancel. */
  private volatile boolean ended;

  // --- the drain loop's

  private final Chunks chunks;
  private boolean awaiting;
  private @Nullable UploadRequests accepted;
  private @Nullable Chunk last;

  UploadReading(UploadSource source, Chunks chunks, Context context) {
    this.source = source;
    this.chunks = chunks;
    this.context = context;
  }

  void serve(UploadRequests requests) {
    requests.attach(this);
    attempt = requests;
    drain();
  }

  /** Ends the subscription; nothing is emitted after it. */
  void stop() {
    stopped = true;
    cancelSource();
  }

  private void cancelSource() {
    Subscription s = upstream.getAndSet(Operators.cancelledSubscription());
    if (s != null && !ended) {
      s.cancel();
    }
  }

  // --- the source's side

  @Override
  public Context currentContext() {
    return context;
  }

  @Override
  public void onSubscribe(Subscription subscription) {
    if (upstream.compareAndSet(null, subscription)) {
      drain();
    } else {
      subscription.cancel();
    }
  }

  @Override
  public void onNext(ByteBuffer buffer) {
    if (stopped) {
      Operators.onNextDropped(buffer, context);
    } else if (buffer == null) {
      broken("gave null", null);
    } else if (!asked.compareAndSet(true, false)) {
      broken("gave more than was asked for", null);
    } else {
      arrived.set(buffer);
      drain();
    }
  }

  /** The source breaks a rule of Reactive Streams: it is left, and the write told of it. */
  private void broken(String what, @Nullable Throwable cause) {
    stopped = true;
    failure = new IllegalStateException("content: " + what, cause);
    cancelSource();
    drain();
  }

  @Override
  public void onError(Throwable error) {
    ended = true;
    if (stopped) {
      Operators.onErrorDropped(error, context);
    } else {
      failure = error;
      drain();
    }
  }

  @Override
  public void onComplete() {
    ended = true;
    complete = true;
    drain();
  }

  // --- the drain loop

  void drain() {
    if (wip.getAndIncrement() != 0) {
      return;
    }
    int missed = 1;
    do {
      UploadRequests serving = attempt;
      if (serving != null && !serving.isOver() && accepts(serving)) {
        serve(serving, failure);
      }
      missed = wip.addAndGet(-missed);
    } while (missed != 0);
  }

  private boolean accepts(UploadRequests serving) {
    if (serving == accepted) {
      return true;
    }
    if (!stopped && failure == null && chunks.has(serving.position())) {
      accepted = serving;
      return true;
    }
    if (accepted == null) {
      accepted = serving; // its first: whatever it is, no other subscription gives more
      return true;
    }
    attempt = null;
    stop();
    source.again(serving);
    return false;
  }

  private void serve(UploadRequests serving, @Nullable Throwable failed) {
    if (failed != null) {
      serving.fail(failed); // held pieces serve nobody any more
      return;
    }
    try {
      while (serving.wants() && !stopped && step(serving)) {
        // one more request has gone out, or one more buffer has come in
      }
    } catch (DataLossException wrong) {
      failure = wrong;
      cancelSource();
      serving.fail(wrong);
    }
  }

  /** False where there is nothing to do until something comes. */
  private boolean step(UploadRequests serving) {
    Chunk end = last;
    if (serving.position() < chunks.end()) {
      Chunk again = chunks.again(serving.position());
      serving.emit(again, end != null && again.end() == end.end());
      return true;
    }
    if (end != null) {
      serving.emit(Chunk.empty(chunks.end()), true); // the server has every byte
      return true;
    }
    Chunk chunk = chunks.next();
    if (chunk != null) {
      serving.emit(chunk, false);
      return true;
    }
    return take(serving);
  }

  private boolean take(UploadRequests serving) {
    boolean all = complete; // before what has arrived: all buffers come before the end
    ByteBuffer buffer = arrived.getAndSet(null);
    if (buffer != null) {
      awaiting = false;
      chunks.add(buffer);
      return true;
    }
    if (all) {
      Chunk end = chunks.last();
      last = end;
      serving.emit(end, true);
      return true;
    }
    Subscription from = upstream.get();
    if (failure != null || from == null || awaiting) {
      return false;
    }
    awaiting = true;
    asked.set(true);
    try {
      from.request(1);
    } catch (Throwable thrown) {
      Exceptions.throwIfFatal(thrown);
      broken("request(1) threw " + thrown, thrown);
    }
    return true;
  }
}
