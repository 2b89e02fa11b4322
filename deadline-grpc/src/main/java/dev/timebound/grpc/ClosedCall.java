package dev.timebound.grpc;

import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** A call on a pool that is closed: UNAVAILABLE, as on a channel that was shut down. */
final class ClosedCall<Q, R> extends ClientCall<Q, R> {
  private final String pool;
  private final @Nullable Executor executor;

  ClosedCall(String pool, @Nullable Executor executor) {
    this.pool = pool;
    this.executor = executor;
  }

  @Override
  public void start(Listener<R> listener, Metadata headers) {
    Runnable close =
        () ->
            listener.onClose(
                Status.UNAVAILABLE.withDescription("channel pool " + pool + " is closed"),
                new Metadata());
    if (executor == null) {
      close.run();
    } else {
      executor.execute(close);
    }
  }

  @Override
  public void request(int messages) {}

  @Override
  public void cancel(@Nullable String message, @Nullable Throwable cause) {}

  @Override
  public void halfClose() {}

  @Override
  public void sendMessage(Q message) {}
}
