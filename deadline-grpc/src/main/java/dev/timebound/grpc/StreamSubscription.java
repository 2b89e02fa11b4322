package dev.timebound.grpc;

import io.grpc.ClientCall;
import java.util.Queue;
import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Operators;
import reactor.util.concurrent.Queues;

/**
 * A server streaming call. A message goes straight downstream where it was asked for and nothing is
 * before it; the queue serves only those that came in ahead of demand.
 */
final class StreamSubscription<Q, R> extends CallSubscription<Q, R> {
  private final Q request;
  private final MessageSizes sizes;
  private final RequestWindow window;

  /**
   * Made by the listener for the first message that has to wait. Never holds more than the window.
   */
  private @Nullable Queue<R> queue;

  private long asked;
  private long emitted;

  StreamSubscription(
      CoreSubscriber<? super R> actual,
      CallSetup setup,
      Q request,
      MessageSizes sizes,
      long requestAhead) {
    super(actual, setup);
    this.request = request;
    this.sizes = sizes;
    this.window = new RequestWindow(requestAhead);
  }

  @Override
  void send(ClientCall<Q, R> started) {
    started.sendMessage(request);
    started.halfClose();
  }

  @Override
  public void onMessage(R message) {
    sizes.parsed();
    if (state != ACTIVE) {
      drop(message);
    } else if (wip == 0 && WIP.compareAndSet(this, 0, 1)) {
      if (requested != emitted && isQueueEmpty()) {
        emitDirectly(message);
      } else {
        keep(message);
      }
      int missed = WIP.decrementAndGet(this);
      if (missed != 0) {
        drainLoop(missed);
      }
    } else {
      keep(message);
      drain();
    }
  }

  private void emitDirectly(R message) {
    try {
      emit(message);
      if (requested != emitted && state == ACTIVE) {
        waiting();
      }
    } catch (Throwable t) {
      subscriberThrew(t);
      throw t;
    }
  }

  private void emit(R message) {
    emitted++;
    askAhead();
    idle();
    actual.onNext(message);
  }

  /** Asks for more where half of the window is used up and downstream still wants something. */
  private void askAhead() {
    long ahead = asked - emitted;
    if (window.isLow(ahead) && requested != emitted) {
      int more = window.refill(ahead, sizes.lately());
      if (more > 0) {
        asked += more;
        ask(more);
      }
    }
  }

  private void keep(R message) {
    Queue<R> q = queue;
    if (q == null) {
      q = Queues.<R>get(RequestWindow.MOST).get();
      queue = q;
    }
    if (!q.offer(message)) {
      drop(message);
      abort(new IllegalStateException("the channel delivered more messages than were asked for"));
    }
  }

  private boolean isQueueEmpty() {
    Queue<R> q = queue;
    return q == null || q.isEmpty();
  }

  @Override
  void step() {
    while (state == ACTIVE) {
      Object how = end; // before the queue: all messages come before the end
      boolean wanted = requested != emitted;
      Queue<R> q = queue;
      R message = q != null && wanted ? q.poll() : null;
      if (message != null) {
        emit(message);
        continue;
      }
      if (how != null && isQueueEmpty()) {
        finish(how);
      } else if (wanted) {
        askAhead();
        waiting();
      } else {
        idle();
      }
      return;
    }
  }

  @Override
  void discard() {
    Queue<R> q = queue;
    if (q != null) {
      Operators.onDiscardQueueWithClear(q, currentContext(), null);
    }
  }

  @Override
  @SuppressWarnings("rawtypes")
  public @Nullable Object scanUnsafe(Attr key) {
    if (key == Attr.BUFFERED) {
      Queue<R> q = queue;
      return q == null ? 0 : q.size();
    }
    return super.scanUnsafe(key);
  }
}
