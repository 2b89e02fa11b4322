package dev.timebound.grpc;

import dev.timebound.health.Member;
import dev.timebound.health.ProbeAnswer;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ClientStreamTracer;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** One channel of the pool, with one connection under it. */
final class PooledChannel implements Member {
  private final String name;
  private final ManagedChannel channel;
  private final ChannelProbe probe;
  private final ConnectionWatch watch;

  /** From prepareProbe to the probe that follows it; the engine runs one after the other. */
  private volatile Metadata probeHeaders = new Metadata();

  private volatile @Nullable Throwable probeFailure;

  /** Null where resets are not paced. */
  private final @Nullable CancelPacer pacer;

  /** Null for one that is in no pool. */
  private volatile @Nullable PoolChannels pool;

  /** It has tried to connect for too long. */
  private volatile boolean unconnected;

  /** On the Scheduler's clock; set before it takes calls. */
  private volatile long refreshAt = Long.MAX_VALUE;

  PooledChannel(
      String name,
      ManagedChannel channel,
      ChannelProbe probe,
      ConnectionWatch watch,
      @Nullable CancelPacer pacer) {
    this.pacer = pacer;
    this.watch = watch;
    this.name = name;
    this.channel = channel;
    this.probe = probe;
  }

  @Override
  public String name() {
    return name;
  }

  ConnectionWatch watch() {
    return watch;
  }

  ManagedChannel channel() {
    return channel;
  }

  /**
   * How its connection stands; IDLE where the channel, one of another make, does not tell.
   *
   * @param connect whether it is to be made, where there is none
   */
  ConnectivityState state(boolean connect) {
    try {
      return channel.getState(connect);
    } catch (UnsupportedOperationException e) {
      return ConnectivityState.IDLE;
    }
  }

  @Nullable CancelPacer pacer() {
    return pacer;
  }

  void unconnected(boolean now) {
    unconnected = now;
  }

  /** Whether it has tried to connect for too long: it is avoided. (BT-44) */
  boolean isUnconnected() {
    return unconnected;
  }

  void refreshAt(long at) {
    refreshAt = at;
  }

  long refreshAt() {
    return refreshAt;
  }

  @Override
  public Mono<Void> prepareProbe() {
    return probe.prepare().doOnNext(headers -> probeHeaders = headers).then();
  }

  @Override
  public Mono<ProbeAnswer> probe() {
    return Mono.defer(
        () -> {
          TrailerWatch watch = new TrailerWatch();
          return probe
              .call(ClientInterceptors.intercept(channel, watch), probeHeaders)
              .then(Mono.just(ProbeAnswer.ANSWERED))
              .onErrorResume(
                  e -> {
                    if (watch.answered || carriesMetadata(e)) {
                      return Mono.just(ProbeAnswer.ANSWERED);
                    }
                    probeFailure = e;
                    return Mono.just(ProbeAnswer.CONNECTION_FAILED);
                  });
        });
  }

  void ownedBy(PoolChannels channels) {
    pool = channels;
  }

  @Override
  public Mono<PooledChannel> replacement() {
    PoolChannels owner = pool;
    return owner == null ? Mono.empty() : owner.fresh();
  }

  @Override
  public void replaced(Member by, Mono<Void> ended) {
    PoolChannels owner = pool;
    if (owner != null) {
      owner.replacedByEngine(this, ended);
    }
  }

  @Override
  public void discarded() {
    PoolChannels owner = pool;
    if (owner != null) {
      owner.discard(this);
    }
  }

  @Override
  public boolean isListening() {
    return watch.loopRuns();
  }

  /** Why the last probe that found its connection failed did so; null where none has. */
  @Nullable Throwable probeFailure() {
    return probeFailure;
  }

  /** A bare HTTP error has no trailers, yet its headers came over this connection. */
  private static boolean carriesMetadata(Throwable e) {
    Metadata trailers = Status.trailersFromThrowable(e);
    return trailers != null && !trailers.keys().isEmpty();
  }

  @Override
  public String toString() {
    return name;
  }

  /**
   * Sees whether the server sent trailers: a status alone does not tell, a local UNAVAILABLE looks
   * the same. And keeps the probe off the channel's executor, all of whose threads callers may
   * hold: that would be taken for the connection's silence. (BT-13)
   */
  private static final class TrailerWatch extends ClientStreamTracer.Factory
      implements ClientInterceptor {
    volatile boolean answered;

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      CallOptions own = options.withStreamTracerFactory(this);
      return next.newCall(
          method, own.getExecutor() == null ? own.withExecutor(Runnable::run) : own);
    }

    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void inboundTrailers(Metadata trailers) {
          answered = true;
        }
      };
    }
  }
}
