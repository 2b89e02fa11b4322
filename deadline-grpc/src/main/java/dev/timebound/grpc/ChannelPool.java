package dev.timebound.grpc;

import dev.timebound.health.FailureKind;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.MemberHealth;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Collection;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * Several channels behind one {@link Channel}: any stub runs on it. Each call goes to the channel
 * with the least open calls; a call counts from its start until its response body ends, a stream as
 * well as a unary call. (BT-1, BT-3)
 *
 * <p>A channel on which a caller has waited in vain while others received is probed and, where the
 * probe fails, quarantined: it takes no new calls and its open ones fail at once with an
 * UNAVAILABLE whose cause is a {@link dev.timebound.health.QuarantinedException}. It is probed on
 * and comes back with the first answer; one that is quarantined again and again is replaced. (BT-10
 * … BT-18)
 *
 * <p>The size follows the peak of calls in flight, once an interval; a channel that is dropped ends
 * its open calls first. Before a channel comes to the age at which the server would close it, and
 * where one does not get connected, another takes its place. (BT-2, BT-5, BT-6, BT-44)
 *
 * <p>Thread-safe. Made by {@link #builder}; whoever builds it closes it. A call started on a closed
 * pool ends with UNAVAILABLE.
 */
public final class ChannelPool extends Channel implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ChannelPool.class);

  private final ChannelPoolSettings settings;
  private final PoolChannels channels;
  private final PoolCare care;
  private final HealthEngine engine;
  private final boolean ownsEngine;
  private final HealthGroup<PooledChannel> group;
  private final PoolResizer resizer;
  private final FailureClassifier classifier;
  private final @Nullable ConnectGuard guard;
  private final String authority;
  private final Runnable removeMeters;

  private final AtomicInteger inFlight = new AtomicInteger();
  private final AtomicLong quarantinedCalls = new AtomicLong();
  private final AtomicBoolean closed = new AtomicBoolean();

  private final Disposable.Composite background = Disposables.composite();
  private final Sinks.Empty<Void> warmed = Sinks.empty();

  ChannelPool(ChannelPoolBuilder builder) {
    this.settings = builder.settings();
    this.classifier = builder.classifier();
    HealthEngine given = builder.engine();
    this.ownsEngine = given == null;
    this.engine = given != null ? given : ownEngine(builder.meters());
    MeterRegistry meters = builder.meters();
    HealthGroup<PooledChannel> made = null;
    PoolChannels opened = null;
    PoolCare caring = null;
    try {
      made = engine.group(settings.name(), settings.healthPolicy());
      this.group = made;
      opened = new PoolChannels(builder, made, this::made);
      this.channels = opened;
      caring = new PoolCare(settings, opened, builder.random);
      this.care = caring;
      this.guard =
          settings.connectChecks()
              ? new ConnectGuard(
                  settings.connectTimeout().toNanos(), settings.scheduler(), member -> care.plan())
              : null;
      this.resizer = new PoolResizer(settings, opened, group, care, inFlight::get, background);
      this.authority = open();
      resizer.start();
      care.start();
      this.removeMeters = meters == null ? () -> {} : PoolMeters.bind(this, meters);
    } catch (Throwable e) {
      background.dispose();
      if (caring != null) {
        caring.close();
      }
      if (opened != null) {
        opened.closed();
      }
      leaveEngine(made);
      throw e;
    }
  }

  private void made(PooledChannel member) {
    member.refreshAt(care.refreshAtAfterNow());
    if (guard != null) {
      guard.watch(member);
    }
  }

  /** The channels of the start; the authority they go to. */
  private String open() {
    String firstAuthority = "";
    for (int i = 0; i < settings.initialChannels(); i++) {
      PooledChannel member = channels.create();
      firstAuthority = member.channel().authority();
      group.add(member);
    }
    background.add(
        channels.warm(channels.live()).doFinally(end -> warmed.tryEmitEmpty()).subscribe());
    return firstAuthority;
  }

  /**
   * @param channels makes one channel with one connection; called for each channel of the pool,
   *     from any thread. The pool owns what it returns
   * @param probe how one of them is asked whether it lives
   */
  public static ChannelPoolBuilder builder(
      Function<? super ConnectionWatch, ? extends ManagedChannel> channels, ChannelProbe probe) {
    return new ChannelPoolBuilder(channels, probe);
  }

  @Override
  public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
    return new PooledCall<>(this, method, options);
  }

  @Override
  public String authority() {
    return authority;
  }

  /** What the health engine knows of each channel in the choice, now. */
  public Collection<MemberHealth> channels() {
    return group.members();
  }

  /** The engine that this pool's group belongs to: its events, its state. */
  public HealthEngine health() {
    return engine;
  }

  /** Calls started whose response body has not ended, over all channels, those that drain too. */
  public int inFlight() {
    return inFlight.get();
  }

  /** Channels not shut down yet: those in the choice and those that drain. */
  public int openChannels() {
    return (int) channels.live().stream().filter(m -> !m.channel().isShutdown()).count();
  }

  /** Calls that a quarantine ended locally, since the pool was built. */
  public long quarantinedCalls() {
    return quarantinedCalls.get();
  }

  /**
   * Completes when every channel of the start has been connected and probed, or has failed to:
   * never with an error, and at once where warming is off. That runs from the start on; whoever
   * subscribes waits for it. Calls made before may wait for their connection. (BT-2)
   */
  public Mono<Void> warm() {
    return warmed.asMono();
  }

  /**
   * Takes every channel out and shuts it down at once: calls still open end with UNAVAILABLE.
   * Idempotent. Does not wait; {@link #isTerminated} tells when the connections are gone.
   */
  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    care.close();
    background.dispose();
    removeMeters.run();
    channels.closed();
    leaveEngine(group);
  }

  private void leaveEngine(@Nullable HealthGroup<PooledChannel> left) {
    if (left != null) {
      engine.remove(left);
    }
    if (ownsEngine) {
      engine.close();
    }
  }

  /** Whether the pool is closed and every connection of it is gone. */
  public boolean isTerminated() {
    return channels.isTerminated();
  }

  private HealthEngine ownEngine(@Nullable MeterRegistry meters) {
    HealthEngine.Builder builder = HealthEngine.builder().scheduler(settings.scheduler());
    if (meters != null) {
      builder.meters(meters);
    }
    return builder.build();
  }

  /** As in {@code storage{healthy=10, open=3} to storage.example:443, 3 in flight}. */
  @Override
  public String toString() {
    return group + " to " + authority + ", " + inFlight() + " in flight";
  }

  // --- for the calls

  @Nullable PooledChannel member(String name) {
    return channels.get(name);
  }

  HealthGroup<PooledChannel> group() {
    return group;
  }

  String name() {
    return settings.name();
  }

  /** By the pool's classifier; a call must end, so one that throws gives way to the standard. */
  @Nullable FailureKind classify(EndedCall call) {
    try {
      return classifier.classify(call);
    } catch (RuntimeException e) {
      LOG.warn("{}: the classifier threw, the standard one stands in: {}", name(), call, e);
      return FailureClassifier.standard().classify(call);
    }
  }

  void callStarted() {
    resizer.reached(inFlight.incrementAndGet());
  }

  void callEnded() {
    inFlight.decrementAndGet();
  }

  PoolCare care() {
    return care;
  }

  /** Channels that the engine replaced for being quarantined again and again. */
  long offendersReplaced() {
    return channels.offenders();
  }

  /** Channels in the choice that have tried to connect for too long. */
  int unconnected() {
    return (int) channels.inService().stream().filter(PooledChannel::isUnconnected).count();
  }

  /** Calls that have ended for their callers and whose server is still to be told. */
  int delayedCancels() {
    int waiting = 0;
    for (PooledChannel member : channels.live()) {
      CancelPacer pacer = member.pacer();
      waiting += pacer == null ? 0 : pacer.waiting();
    }
    return waiting;
  }

  void callQuarantined() {
    quarantinedCalls.incrementAndGet();
  }
}
