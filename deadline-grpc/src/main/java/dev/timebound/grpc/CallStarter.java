package dev.timebound.grpc;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.MethodDescriptor;
import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;

/** What all subscriptions of one publisher share. */
record CallStarter<Q, R>(Channel channel, MethodDescriptor<Q, R> method, CallOptions options) {

  /**
   * The setup of one subscription; null where its deadline has passed already: the subscriber has
   * been told then, and no call may be made.
   */
  @Nullable CallSetup setup(CoreSubscriber<? super R> subscriber) {
    Context context = subscriber.currentContext();
    Deadline deadline = Deadlines.current(context);
    String operation = method.getFullMethodName();
    if (deadline.isExpired()) {
      // by the deadline itself: a retry without limit may hold the thread that its timer waits for
      Mono.from(Deadlines.<R>of(deadline, operation).apply(Mono.never())).subscribe(subscriber);
      return null;
    }
    return CallSetup.of(operation, options, deadline, context);
  }

  /** Makes a call, without a sign to anyone yet. */
  ClientCall<Q, R> newCall(CallOptions prepared) {
    return channel.newCall(method, prepared);
  }
}
