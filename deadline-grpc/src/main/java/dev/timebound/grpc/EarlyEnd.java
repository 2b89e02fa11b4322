package dev.timebound.grpc;

import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Lets a call end for its caller while the transport still carries it: its cancel waits for its
 * turn. The listener hears one signal at a time, and none after its close. (BT-21a)
 */
final class EarlyEnd<R> extends ClientCall.Listener<R> {
  private static final int IDLE = 0;

  /** A signal of the transport is being handed on. */
  private static final int BUSY = 1;

  /** The same, and whoever does it tells of the end after it. */
  private static final int BUSY_AND_ENDING = 2;

  private static final int ENDED = 3;

  private final ClientCall.Listener<R> listener;
  private final AtomicInteger state = new AtomicInteger(IDLE);
  private volatile Status status = Status.CANCELLED;

  EarlyEnd(ClientCall.Listener<R> listener) {
    this.listener = listener;
  }

  /** From any thread, at most once. */
  void end(Status how) {
    status = how;
    if (state.compareAndSet(IDLE, ENDED)) {
      listener.onClose(how, new Metadata());
    } else if (!state.compareAndSet(BUSY, BUSY_AND_ENDING) && state.compareAndSet(IDLE, ENDED)) {
      listener.onClose(how, new Metadata()); // it became idle in between
    }
  }

  private void hand(Runnable signal) {
    if (!state.compareAndSet(IDLE, BUSY)) {
      return;
    }
    try {
      signal.run();
    } finally {
      if (!state.compareAndSet(BUSY, IDLE) && state.compareAndSet(BUSY_AND_ENDING, ENDED)) {
        listener.onClose(status, new Metadata());
      }
    }
  }

  @Override
  public void onHeaders(Metadata headers) {
    hand(() -> listener.onHeaders(headers));
  }

  @Override
  public void onMessage(R message) {
    hand(() -> listener.onMessage(message));
  }

  @Override
  public void onReady() {
    hand(listener::onReady);
  }

  @Override
  public void onClose(Status how, Metadata trailers) {
    if (state.getAndSet(ENDED) != ENDED) {
      listener.onClose(how, trailers);
    }
  }
}
