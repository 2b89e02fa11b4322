package dev.timebound.grpc;

import io.grpc.ClientCall;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Exceptions;
import reactor.core.publisher.Operators;
import reactor.util.concurrent.Queues;
import reactor.util.context.Context;

/**
 * A client streaming call: what the source gives goes out while the call takes it.
 *
 * <p>A fourth side meets in the drain loop: the source. It only leaves what it gives in the queue;
 * the loop sends, so that sends are serialised whatever thread the source emits on. The source is
 * asked for more only while the call is ready, and what it has given by the time the call is not
 * waits here, never in the transport.
 */
final class UploadSubscription<Q, R> extends AnswerSubscription<Q, R> {
  @SuppressWarnings("rawtypes")
  private static final AtomicReferenceFieldUpdater<UploadSubscription, Subscription> UPSTREAM =
      AtomicReferenceFieldUpdater.newUpdater(
          UploadSubscription.class, Subscription.class, "upstream");

  private final Publisher<? extends Q> requests;
  private final MessageSizes sizes;
  private final RequestWindow window;
  private final Queue<Q> queue = Queues.<Q>get(RequestWindow.MOST).get();

  private volatile @Nullable Subscription upstream;

  /** How the source ended: {@link #COMPLETE} or a Throwable. Set after its last message is held. */
  private volatile @Nullable Object sourceEnd;

  /** The call takes nothing more: a send failed, or nothing more is wanted of it. */
  private volatile boolean stopped;

  /** The drain loop's, as are the counts. */
  private boolean halfClosed;

  private long asked;
  private long sent;

  UploadSubscription(
      CoreSubscriber<? super R> actual,
      CallSetup setup,
      Publisher<? extends Q> requests,
      MessageSizes sizes,
      long requestAhead) {
    super(actual, setup);
    this.requests = requests;
    this.sizes = sizes;
    this.window = new RequestWindow(requestAhead);
  }

  // --- the source's side

  @Override
  void send(ClientCall<Q, R> started) {
    if (!stopped) {
      requests.subscribe(new Source());
    }
  }

  /** Leaves what comes to the drain loop. */
  private final class Source implements CoreSubscriber<Q> {
    @Override
    public Context currentContext() {
      return UploadSubscription.this.currentContext();
    }

    @Override
    public void onSubscribe(Subscription subscription) {
      Objects.requireNonNull(subscription, "subscription");
      if (Operators.setOnce(UPSTREAM, UploadSubscription.this, subscription)) {
        drain();
      }
    }

    @Override
    public void onNext(Q message) {
      Objects.requireNonNull(message, "message");
      if (sourceEnd != null) {
        Operators.onNextDropped(message, currentContext());
        return;
      }
      if (!queue.offer(message)) {
        Operators.onDiscard(message, currentContext());
        Operators.terminate(UPSTREAM, UploadSubscription.this);
        sourceEnd =
            Exceptions.failWithOverflow("the source gave more messages than were asked for");
      }
      drain();
    }

    @Override
    public void onError(Throwable error) {
      Objects.requireNonNull(error, "error");
      if (sourceEnd != null || stopped) {
        Operators.onErrorDropped(error, currentContext());
        return;
      }
      sourceEnd = error;
      drain();
    }

    @Override
    public void onComplete() {
      if (sourceEnd == null) {
        sourceEnd = COMPLETE;
        drain();
      }
    }
  }

  // --- the call's side

  @Override
  public void onReady() {
    drain();
  }

  @Override
  void stopSending() {
    stopped = true;
    if (sourceEnd == null) {
      Operators.terminate(UPSTREAM, this);
    }
  }

  // --- the drain loop

  @Override
  boolean sendMore() {
    ClientCall<Q, R> call = call();
    boolean serversTurn = call == null || stopped || halfClosed || sendTo(call);
    attempt().sending(sent, serversTurn);
    return serversTurn;
  }

  /** False where the source is awaited. */
  private boolean sendTo(ClientCall<Q, R> call) {
    if (isAnswered()) {
      // Whatever it says, the server wants no more; it may still wait to hear that there is none.
      stopSending();
      halfClose(call);
      return true;
    }
    while (!stopped) {
      Object over = sourceEnd; // before the queue: all messages come before the end
      if (over instanceof Throwable error) {
        abort(error);
        return true;
      }
      if (over != null && queue.isEmpty()) {
        halfClose(call);
        return true;
      }
      if (!call.isReady()) {
        return true;
      }
      Q message = queue.poll();
      if (message == null) {
        if (over != null || askSource()) {
          continue;
        }
        return false;
      }
      sendOne(call, message);
    }
    return true;
  }

  private void sendOne(ClientCall<Q, R> call, Q message) {
    try {
      call.sendMessage(message);
      sent++;
    } catch (Throwable t) {
      Exceptions.throwIfJvmFatal(t);
      couldNotSend(call, t);
    }
  }

  /**
   * Asks for more where half of the window is used up.
   *
   * @return whether the source has given something, or its end, at once
   */
  private boolean askSource() {
    Subscription source = upstream;
    long ahead = asked - sent;
    if (source == null || !window.isLow(ahead)) {
      return false;
    }
    int more = window.refill(ahead, sizes.lately());
    if (more > 0) {
      asked += more;
      source.request(more);
    }
    return !queue.isEmpty() || sourceEnd != null;
  }

  private void halfClose(ClientCall<Q, R> call) {
    halfClosed = true;
    try {
      call.halfClose();
    } catch (Throwable t) {
      Exceptions.throwIfJvmFatal(t);
      couldNotSend(call, t);
    }
  }

  @Override
  void discard() {
    super.discard();
    Operators.onDiscardQueueWithClear(queue, currentContext(), null);
  }
}
