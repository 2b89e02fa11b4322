package dev.timebound.cas;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One channel to one endpoint. It knows its calls: those that wait for a connection are failed when
 * the attempt to connect fails, in place of waiting on (CAS-1), and those that run on a connection
 * are left alone when the channel is retired.
 *
 * <p>It also knows for how long calls have waited in vain, whoever ended them: nothing else tells
 * of a connection that is half open where the callers' own deadlines end all calls. (CAS-2b)
 */
final class EndpointChannel extends Channel {
  /** Headers of one call, added to what it has. */
  static final CallOptions.Key<Metadata> HEADERS =
      CallOptions.Key.createWithDefault("timebound-cas-headers", new Metadata());

  private final ManagedChannel raw;

  /** As errors name it: the shard and the endpoint. */
  private final String where;

  private final Set<EndpointCall<?, ?>> waiting = ConcurrentHashMap.newKeySet();
  private final AtomicInteger open = new AtomicInteger();
  private volatile @Nullable Status retired;
  private final Silence silence;
  private final LongSupplier clock;
  private final Consumer<EndpointChannel> doubt;

  /**
   * @param patience how long calls may wait in vain, in nanoseconds
   * @param clock in nanoseconds
   * @param doubt told when they have
   */
  EndpointChannel(
      ManagedChannel raw,
      String where,
      long patience,
      LongSupplier clock,
      Consumer<EndpointChannel> doubt) {
    this.raw = raw;
    this.where = where;
    this.silence = new Silence(patience);
    this.clock = clock;
    this.doubt = doubt;
  }

  ManagedChannel raw() {
    return raw;
  }

  String where() {
    return where;
  }

  @Override
  public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
    return new EndpointCall<>(this, method, options);
  }

  @Override
  public String authority() {
    return raw.authority();
  }

  /** Calls started and not ended. */
  int openCalls() {
    return open.get();
  }

  /**
   * Takes the channel out of use: calls that wait for a connection end with this status, those that
   * run on one run on, and with the last of them the channel ends.
   */
  void retire(Status why) {
    retired = why;
    waiting.forEach(call -> failIfWaiting(call, why));
    if (open.get() == 0) {
      raw.shutdownNow();
    } else {
      raw.shutdown();
    }
  }

  /** Ends everything at once. */
  void close() {
    raw.shutdownNow();
  }

  boolean isTerminated() {
    return raw.isTerminated();
  }

  // --- the calls' side

  void started() {
    open.incrementAndGet();
  }

  /** The call has no connection yet. */
  void waits(EndpointCall<?, ?> call) {
    waiting.add(call);
    Status why = retired;
    if (call.isPlaced()) {
      waiting.remove(call);
    } else if (why != null) {
      failIfWaiting(call, why);
    }
  }

  /** The call has a connection, and waits for what comes on it from then on. */
  void placed(EndpointCall<?, ?> call, long now) {
    waiting.remove(call);
    silence.begins(now);
  }

  void ended(EndpointCall<?, ?> call) {
    waiting.remove(call);
    if (open.decrementAndGet() == 0 && retired != null) {
      // A channel that still connects would wait for that in an orderly shutdown.
      raw.shutdownNow();
    }
  }

  long now() {
    return clock.getAsLong();
  }

  /** Something has come in, for whichever call. */
  void heard() {
    silence.ended();
  }

  /** A call was given up of which nothing had come in since then. */
  void unanswered(long since) {
    if (silence.lasts(since, now())) {
      doubt.accept(this);
    }
  }

  private void failIfWaiting(EndpointCall<?, ?> call, Status why) {
    if (waiting.remove(call)) {
      call.fail(why);
    }
  }
}
