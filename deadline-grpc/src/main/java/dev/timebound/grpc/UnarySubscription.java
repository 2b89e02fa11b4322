package dev.timebound.grpc;

import io.grpc.Status;
import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;

/** A unary call: its message is handed on when the server has closed the call with OK. */
final class UnarySubscription<Q, R> extends CallSubscription<Q, R> {
  /** Two, so that a server that sends more than one message is found out, not taken for a stall. */
  private static final int ASK = 2;

  private boolean asked;

  /** Written by the listener while active, taken by the drain loop. */
  private @Nullable R value;

  UnarySubscription(CoreSubscriber<? super R> actual, CallSetup setup) {
    super(actual, setup);
  }

  @Override
  public void onMessage(R message) {
    if (state != ACTIVE) {
      drop(message);
    } else if (value == null) {
      value = message;
      drain(); // for a cancel that came in between: it drops what it finds
    } else {
      drop(message);
      abort(
          Status.INTERNAL
              .withDescription("More than one value received for unary call")
              .asRuntimeException());
    }
  }

  @Override
  void step() {
    Object how = end;
    if (how != null) {
      close(how);
    } else if (requested != 0) {
      if (!asked) {
        asked = true;
        ask(ASK);
      }
      waiting();
    }
  }

  private void close(Object how) {
    R answer = value;
    if (how != COMPLETE) {
      finish(how);
    } else if (answer == null) {
      finish(
          Status.INTERNAL.withDescription("No value received for unary call").asRuntimeException());
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
