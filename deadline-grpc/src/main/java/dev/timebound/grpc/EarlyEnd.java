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
  /** A signal of the transport is being handed on. */
  private static final int BUSY = 1;

  /** Nothing more is handed on; where it came while busy, whoever is at it tells of the end. */
  private static final int ENDED = 2;

  private final ClientCall.Listener<R> listener;
  private final AtomicInteger state = new AtomicInteger();
  private volatile Status status = Status.CANCELLED;

  EarlyEnd(ClientCall.Listener<R> listener) {
    this.listener = listener;
  }

  /** From any thread, at most once. */
  void end(Status how) {
    status = how;
    if (end() == 0) {
      listener.onClose(how, new Metadata());
    }
  }

  /** In one step, however fast the messages come; what it was before. */
  private int end() {
    return state.getAndUpdate(before -> before | ENDED);
  }

  private void hand(Runnable signal) {
    if (!state.compareAndSet(0, BUSY)) {
      return;
    }
    try {
      signal.run();
    } finally {
      if ((state.getAndUpdate(before -> before & ~BUSY) & ENDED) != 0) {
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
    if (end() == 0) {
      listener.onClose(how, trailers);
    }
  }
}
