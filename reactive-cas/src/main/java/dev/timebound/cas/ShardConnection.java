package dev.timebound.cas;

import dev.timebound.cas.CasConfig.Endpoint;
import io.grpc.Channel;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;

/**
 * The gate to one shard: gives a connected channel with a free stream, or waits for the first
 * attempt, or for a stream, or fails at once where the last attempt to every endpoint has failed
 * (CAS-1).
 *
 * <p>All changes of its endpoints happen under its lock; who waits is told after it is let go, each
 * with an exception of its own.
 */
final class ShardConnection implements EndpointConnection.Host, AutoCloseable {
  private final String shard;
  private final RingSettings settings;
  private final Executor executor;
  private final CasMeters meters;
  private final List<EndpointConnection> endpoints = new ArrayList<>();
  private final AtomicInteger turn = new AtomicInteger();
  private final AtomicBoolean serving = new AtomicBoolean();

  /** Who comes now waits behind others. Written under the lock. */
  private volatile boolean queued;

  // --- guarded by this

  /** Told under the lock, run after it. */
  private List<Runnable> outbox = new ArrayList<>();

  /** Who waits for a connection or a stream, in the order of their coming. */
  private final Set<Waiter> waiters = new LinkedHashSet<>();

  /** Who waits for attempts made for a trial. */
  private final Set<Waiter> trials = new LinkedHashSet<>();

  private boolean closed;

  /**
   * @param opener makes a channel that has not begun to connect
   * @param executor where calls go on that have waited for a stream: one may become free on the
   *     connection's event loop
   */
  ShardConnection(
      CasConfig.Shard shard,
      RingSettings settings,
      Function<Endpoint, RawChannel> opener,
      Executor executor,
      CasMeters meters) {
    this.shard = shard.name();
    this.settings = settings;
    this.executor = executor;
    this.meters = meters;
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

  /** The same, for a call that nobody asks how far it has come. */
  Mono<Channel> channel(boolean trial) {
    return channel(trial, new CallStage(), waited -> {});
  }

  /**
   * A channel with a connection, which has a free stream while it is handed on: the call is to be
   * started there and then.
   *
   * @param trial connects anew, and answers by what comes of it, in place of what is known from
   *     before (CAS-2a): neither a failure nor a connection, which may be half open, counts
   * @param stage is told while it waits for a stream
   * @param charge told of the nanoseconds that it waited for one
   */
  Mono<Channel> channel(boolean trial, CallStage stage, LongConsumer charge) {
    return Mono.create(
        sink -> {
          EndpointChannel free = trial || queued ? null : reserve();
          if (free != null) {
            grant(sink, free);
          } else {
            wait(new Waiter(sink, stage, charge), trial);
          }
        });
  }

  /** Starts the call, which takes its own stream in place of the one reserved. */
  private static void grant(MonoSink<Channel> sink, EndpointChannel channel) {
    try {
      sink.success(channel);
    } finally {
      channel.letGo();
    }
  }

  /** In turn among those that have a stream to give; null where none has. */
  private @Nullable EndpointChannel reserve() {
    int size = endpoints.size();
    int from = size == 1 ? 0 : turn.getAndIncrement();
    for (int i = 0; i < size; i++) {
      EndpointChannel free = endpoints.get(Math.floorMod(from + i, size)).reserve();
      if (free != null) {
        return free;
      }
    }
    return null;
  }

  /** Who waits, and for what. */
  private static final class Waiter {
    private final MonoSink<Channel> sink;
    private final CallStage stage;
    private final LongConsumer charge;

    /** There are connections, and none has a stream left; since then. */
    private boolean starved;

    private long since;

    Waiter(MonoSink<Channel> sink, CallStage stage, LongConsumer charge) {
      this.sink = sink;
      this.stage = stage;
      this.charge = charge;
    }

    void ended(long now) {
      if (starved) {
        starved = false;
        charge.accept(now - since);
      }
    }
  }

  private void wait(Waiter waiter, boolean trial) {
    waiter.sink.onCancel(() -> leave(waiter));
    boolean[] toldAtOnce = {true};
    locked(
        () -> {
          toldAtOnce[0] = false;
          if (trial) {
            boolean first = trials.isEmpty();
            trials.add(waiter);
            if (first) {
              endpoints.forEach(EndpointConnection::connectAnew);
            }
            return;
          }
          boolean first = waiters.isEmpty();
          waiters.add(waiter);
          queued = true; // before it is looked once more: what becomes free from now on is told
          serve();
          if (first && queued) {
            endpoints.forEach(EndpointConnection::connect);
          }
        });
    if (toldAtOnce[0]) {
      waiter.sink.error(closedStatus().asRuntimeException());
    }
  }

  private synchronized void leave(Waiter waiter) {
    waiter.stage.givenUp();
    waiter.ended(settings.now());
    if (waiters.remove(waiter)) {
      queued = !waiters.isEmpty();
    }
    trials.remove(waiter);
  }

  // --- under the lock

  /** Gives what is there to who waits, in turn; who is left waits for what is under way. */
  private void serve() {
    while (!waiters.isEmpty()) {
      EndpointChannel free = reserve();
      if (free == null) {
        break;
      }
      Waiter next = waiters.iterator().next();
      waiters.remove(next);
      next.ended(settings.now());
      outbox.add(() -> grant(next.sink, free));
    }
    queued = !waiters.isEmpty();
    if (waiters.isEmpty()) {
      return;
    }
    if (isConnected()) {
      waiters.forEach(this::waitsForStream);
      widen();
    } else if (allFailed()) {
      failAll(waiters, this::notConnected);
      queued = false;
    }
  }

  private void waitsForStream(Waiter waiter) {
    if (!waiter.starved) {
      waiter.starved = true;
      waiter.since = settings.now();
      meters.waitsForStream(shard);
      waiter.stage.at(this::noStream);
    }
  }

  /** One more connection, of the next endpoint that may have one, and one at a time. */
  private void widen() {
    int size = endpoints.size();
    int from = size == 1 ? 0 : turn.get();
    for (int i = 0; i < size; i++) {
      if (endpoints.get(Math.floorMod(from + i, size)).widen()) {
        return;
      }
    }
  }

  private boolean isConnected() {
    return endpoints.stream().anyMatch(e -> !e.connections().isEmpty());
  }

  private boolean allFailed() {
    return endpoints.stream().allMatch(e -> e.failure() != null);
  }

  private void failAll(Set<Waiter> some, Supplier<Status> why) {
    for (Waiter waiter : some) {
      outbox.add(() -> waiter.sink.error(why.get().asRuntimeException()));
    }
    some.clear();
  }

  @Override
  public void connected(EndpointChannel channel) {
    for (Waiter trial : trials) {
      if (channel.reserve()) {
        outbox.add(() -> grant(trial.sink, channel));
      } else {
        waiters.add(trial);
      }
    }
    trials.clear();
    serve();
  }

  @Override
  public void changed() {
    if (!trials.isEmpty() && endpoints.stream().noneMatch(EndpointConnection::isConnecting)) {
      if (isConnected()) {
        waiters.addAll(trials); // on what was kept, since nothing better is to be had
        trials.clear();
      } else {
        failAll(trials, this::notConnected);
      }
    }
    serve();
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

  // --- from any thread

  @Override
  public void freed() {
    if (queued && serving.compareAndSet(false, true)) {
      try {
        executor.execute(this::serveLater);
      } catch (RejectedExecutionException shutDown) {
        serveLater();
      }
    }
  }

  private void serveLater() {
    serving.set(false);
    locked(this::serve);
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

  private Status closedStatus() {
    return Status.UNAVAILABLE.withDescription(shard + ": the ring is closed");
  }

  /** What who waits for a stream waits for; null where there is no connection any more. */
  private @Nullable String noStream() {
    int connections = endpoints.stream().mapToInt(e -> e.connections().size()).sum();
    return connections == 0
        ? null
        : "a free stream: "
            + streams()
            + " calls are open on "
            + connections
            + (connections == 1 ? " connection" : " connections")
            + ", as many as the server takes";
  }

  /** In use on the connections that take calls. */
  int streams() {
    return endpoints.stream()
        .flatMap(endpoint -> endpoint.connections().stream())
        .mapToInt(EndpointChannel::streams)
        .sum();
  }

  /** Calls open on its channels. */
  synchronized int openCalls() {
    return endpoints.stream().mapToInt(EndpointConnection::openCalls).sum();
  }

  /** Ends every channel and timer; who waits is told that the ring is closed. */
  @Override
  public void close() {
    List<Runnable> out;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      endpoints.forEach(EndpointConnection::close);
      failAll(waiters, this::closedStatus);
      failAll(trials, this::closedStatus);
      queued = false;
      out = outbox;
    }
    out.forEach(Runnable::run);
  }
}
