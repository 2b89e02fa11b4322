package dev.timebound.grpc;

import io.grpc.Status;
import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;

/**
 * A call that is answered with one message, which is handed on when the server has closed the call
 * with OK.
 */
abstract class AnswerSubscription<Q, R> extends CallSubscription<Q, R> {
  /** Two, so that a server that sends more than one message is found out, not taken for a stall. */
  private static final int ASK = 2;

  private boolean asked;

  /** Written by the listener while active, taken by the drain loop. */
  private @Nullable R value;

  AnswerSubscription(CoreSubscriber<? super R> actual, CallSetup setup) {
    super(actual, setup);
  }

  /**
   * Sends what can be sent now, in the drain loop.
   *
   * @return whether it is the server's turn now: nothing here keeps the call from going on
   */
  abstract boolean sendMore();

  /** Whether the server has answered, which it may do before it has heard all. */
  final boolean isAnswered() {
    return value != null;
  }

  @Override
  public final void onMessage(R message) {
    if (state != ACTIVE) {
      drop(message);
    } else if (value == null) {
      value = message;
      drain(); // for a cancel that came in between: it drops what it finds
    } else {
      drop(message);
      abort(
          Status.INTERNAL
              .withDescription("More than one value received (expected: one)")
              .asRuntimeException());
    }
  }

  @Override
  final void step() {
    Object how = end;
    if (how != null) {
      close(how);
      return;
    }
    if (requested != 0 && !asked) {
      asked = true;
      ask(ASK);
    }
    if (sendMore() && requested != 0) {
      waiting();
    } else {
      idle();
    }
  }

  private void close(Object how) {
    R answer = value;
    if (how != COMPLETE) {
      finish(how);
    } else if (answer == null) {
      finish(
          Status.INTERNAL
              .withDescription("No value received (expected: one)")
              .asRuntimeException());
    } else {
      value = null;
      idle();
      actual.onNext(answer);
      finish(how);
    }
  }

  @Override
  void discard() {
    R unused = value;
    if (unused != null) {
      value = null;
      drop(unused);
    }
  }
}
