package dev.timebound.cas;

import dev.timebound.cas.CasConfig.Endpoint;
import io.grpc.Channel;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * The gate to one shard: gives a connected channel, or waits for the first attempt, or fails at
 * once where the last attempt to every endpoint has failed (CAS-1).
 *
 * <p>All changes of its endpoints happen under its lock; who waits is told after it is let go.
 */
final class ShardConnection implements EndpointConnection.Host, AutoCloseable {
  private final String shard;
  private final List<EndpointConnection> endpoints = new ArrayList<>();
  private final AtomicInteger turn = new AtomicInteger();

  // --- guarded by this

  /** Told under the lock, run after it. */
  private List<Runnable> outbox = new ArrayList<>();

  /** Who waits for a connection; null where nobody does. */
  private Sinks.@Nullable One<Channel> gate;

  /** Who waits for attempts made for a trial. */
  private Sinks.@Nullable One<Channel> trialGate;

  private boolean closed;

  /**
   * @param opener makes a channel that has not begun to connect
   */
  ShardConnection(
      CasConfig.Shard shard,
      RingSettings settings,
      Function<Endpoint, ManagedChannel> opener,
      CasMeters meters) {
    this.shard = shard.name();
    for (Endpoint endpoint : shard.endpoints()) {
      endpoints.add(
          new EndpointConnection(
              this,
              shard.name() + " at " + endpoint,
              settings,
              () -> opener.apply(endpoint),
              meters));
    }
  }

  /** Connects every endpoint in the background. */
  void start() {
    locked(() -> endpoints.forEach(EndpointConnection::connect));
  }

  /**
   * A channel with a connection.
   *
   * @param trial connects anew, and answers by what comes of it, in place of what is known from
   *     before (CAS-2a): neither a failure nor a connection, which may be half open, counts
   */
  Mono<Channel> channel(boolean trial) {
    Mono<Channel> ready = trial ? null : next();
    return ready != null ? ready : waiting(trial);
  }

  /** In turn among the connected ones; null where none is. */
  private @Nullable Mono<Channel> next() {
    int size = endpoints.size();
    if (size == 1) {
      return endpoints.get(0).ready();
    }
    int from = turn.getAndIncrement();
    for (int i = 0; i < size; i++) {
      Mono<Channel> ready = endpoints.get(Math.floorMod(from + i, size)).ready();
      if (ready != null) {
        return ready;
      }
    }
    return null;
  }

  private synchronized Mono<Channel> waiting(boolean trial) {
    if (closed) {
      return Mono.error(
          Status.UNAVAILABLE.withDescription(shard + ": the ring is closed").asRuntimeException());
    }
    Mono<Channel> ready = trial ? null : next();
    if (ready != null) {
      return ready;
    }
    if (trial) {
      Sinks.One<Channel> sink = trialGate;
      if (sink == null) {
        sink = Sinks.one();
        trialGate = sink;
        endpoints.forEach(EndpointConnection::connectAnew);
      }
      return sink.asMono();
    }
    if (allFailed()) {
      return Mono.error(notConnected().asRuntimeException());
    }
    Sinks.One<Channel> sink = gate;
    if (sink == null) {
      sink = Sinks.one();
      gate = sink;
      endpoints.forEach(EndpointConnection::connect);
    }
    return sink.asMono();
  }

  private boolean allFailed() {
    return endpoints.stream().allMatch(e -> e.failure() != null);
  }

  private Status notConnected() {
    Status last = Status.UNAVAILABLE;
    List<String> each = new ArrayList<>();
    for (EndpointConnection endpoint : endpoints) {
      Status failure = endpoint.failure();
      if (failure != null) {
        each.add(String.valueOf(failure.getDescription()));
        last = last.withCause(failure.getCause());
      }
    }
    return last.withDescription(each.stream().collect(Collectors.joining("; ")));
  }

  @Override
  public void changed(EndpointConnection endpoint) {
    Mono<Channel> ready = next();
    if (ready != null) {
      tell(gate, ready, null);
      tell(trialGate, ready, null);
      gate = null;
      trialGate = null;
      return;
    }
    if (allFailed()) {
      tell(gate, null, notConnected());
      gate = null;
    }
    if (endpoints.stream().noneMatch(EndpointConnection::isConnecting)) {
      tell(trialGate, null, notConnected());
      trialGate = null;
    }
  }

  private void tell(
      Sinks.@Nullable One<Channel> sink, @Nullable Mono<Channel> ready, @Nullable Status failure) {
    if (sink == null) {
      return;
    }
    if (ready != null) {
      outbox.add(() -> ready.subscribe(sink::tryEmitValue));
    } else if (failure != null) {
      outbox.add(() -> sink.tryEmitError(failure.asRuntimeException()));
    }
  }

  @Override
  public void locked(Runnable change) {
    List<Runnable> out;
    synchronized (this) {
      if (closed) {
        return;
      }
      change.run();
      if (outbox.isEmpty()) {
        return;
      }
      out = outbox;
      outbox = new ArrayList<>();
    }
    out.forEach(Runnable::run);
  }

  /** Calls open on its channels. */
  synchronized int openCalls() {
    return endpoints.stream().mapToInt(EndpointConnection::openCalls).sum();
  }

  /** Ends every channel and timer; who waits for a connection is told that the ring is closed. */
  @Override
  public void close() {
    Status why = Status.UNAVAILABLE.withDescription(shard + ": the ring is closed");
    List<Runnable> out;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      endpoints.forEach(EndpointConnection::close);
      tell(gate, null, why);
      tell(trialGate, null, why);
      gate = null;
      trialGate = null;
      out = outbox;
    }
    out.forEach(Runnable::run);
  }
}
