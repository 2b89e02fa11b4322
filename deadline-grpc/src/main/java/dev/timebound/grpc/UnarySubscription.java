package dev.timebound.grpc;

import io.grpc.ClientCall;
import reactor.core.CoreSubscriber;

/** A unary call: the one request goes out at once. */
final class UnarySubscription<Q, R> extends AnswerSubscription<Q, R> {
  private final Q request;

  UnarySubscription(CoreSubscriber<? super R> actual, CallSetup setup, Q request) {
    super(actual, setup);
    this.request = request;
  }

  @Override
  void send(ClientCall<Q, R> started) {
    started.sendMessage(request);
    started.halfClose();
  }

  @Override
  boolean sendMore() {
    return true;
  }
}
