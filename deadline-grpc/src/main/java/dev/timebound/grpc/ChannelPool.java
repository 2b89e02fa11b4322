package dev.timebound.grpc;

import dev.timebound.health.FailureKind;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import dev.timebound.health.ProbeAnswer;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Several channels behind one {@link Channel}: any stub runs on it. Each call goes to the channel
 * with the least open calls; a call counts from its start until its response body ends, a stream as
 * well as a unary call. (BT-1, BT-3)
 *
 * <p>A channel on which a caller has waited in vain while others received is probed and, where the
 * probe fails, quarantined: it takes no new calls and its open ones fail at once with an
 * UNAVAILABLE whose cause is a {@link dev.timebound.health.QuarantinedException}. It is probed on
 * and comes back with the first answer. (BT-10 … BT-17)
 *
 * <p>The size follows the peak of calls in flight, once an interval; a channel that is dropped ends
 * its open calls first. (BT-2, BT-5)
 *
 * <p>Thread-safe. Made by {@link #builder}; whoever builds it closes it. A call started on a closed
 * pool ends with UNAVAILABLE.
 */
public final class ChannelPool extends Channel implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ChannelPool.class);

  private final ChannelPoolSettings settings;
  private final Function<? super ConnectionWatch, ? extends ManagedChannel> channels;
  private final ChannelProbe probe;
  private final HealthEngine engine;
  private final boolean ownsEngine;
  private final HealthGroup<PooledChannel> group;
  private final PoolSizer sizer;
  private final FailureClassifier classifier;
  private final String authority;
  private final Runnable removeMeters;

  /** By name; those that drain too, until they are shut down. */
  private final ConcurrentHashMap<String, PooledChannel> live = new ConcurrentHashMap<>();

  private final AtomicInteger sequence = new AtomicInteger();
  private final AtomicInteger inFlight = new AtomicInteger();
  private final AtomicInteger peak = new AtomicInteger();
  private final AtomicLong quarantinedCalls = new AtomicLong();
  private final AtomicBoolean closed = new AtomicBoolean();

  /** What the close shut down; null before it. */
  private volatile @Nullable List<ManagedChannel> atClose;

  private final Disposable.Composite background = Disposables.composite();

  ChannelPool(ChannelPoolBuilder builder) {
    this.settings = builder.settings();
    this.channels = builder.channels();
    this.probe = builder.probe();
    this.classifier = builder.classifier();
    this.sizer =
        new PoolSizer(
            settings.minChannels(),
            settings.maxChannels(),
            settings.minRpcsPerChannel(),
            settings.maxRpcsPerChannel(),
            settings.maxResizeStep());
    HealthEngine given = builder.engine();
    this.ownsEngine = given == null;
    this.engine = given != null ? given : ownEngine(builder.meters());
    MeterRegistry meters = builder.meters();
    HealthGroup<PooledChannel> made = null;
    try {
      made = engine.group(settings.name(), settings.healthPolicy());
      this.group = made;
      this.authority = open();
      if (settings.resizing()) {
        long interval = settings.resizeInterval().toNanos();
        background.add(
            settings
                .scheduler()
                .schedulePeriodically(this::resize, interval, interval, TimeUnit.NANOSECONDS));
      }
      this.removeMeters = meters == null ? () -> {} : PoolMeters.bind(this, meters);
    } catch (Throwable e) {
      background.dispose();
      live.values().forEach(member -> member.channel().shutdownNow());
      leaveEngine(made);
      throw e;
    }
  }

  /** The channels of the start; the authority they go to. */
  private String open() {
    String firstAuthority = "";
    for (int i = 0; i < settings.initialChannels(); i++) {
      PooledChannel member = create();
      firstAuthority = member.channel().authority();
      group.add(member);
    }
    background.add(warm().subscribe());
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
    return (int) live.values().stream().filter(m -> !m.channel().isShutdown()).count();
  }

  /** Calls that a quarantine ended locally, since the pool was built. */
  public long quarantinedCalls() {
    return quarantinedCalls.get();
  }

  /**
   * Completes when every channel of the start has been connected and probed, or has failed to:
   * never with an error.
   */
  public Mono<Void> warm() {
    return warm(List.copyOf(live.values()));
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
    background.dispose();
    removeMeters.run();
    List<PooledChannel> members = List.copyOf(live.values());
    for (PooledChannel member : members) {
      drop(member);
      member.channel().shutdownNow();
    }
    atClose = members.stream().map(PooledChannel::channel).toList();
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
    List<ManagedChannel> last = atClose;
    return last != null && last.stream().allMatch(ManagedChannel::isTerminated);
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
    return live.get(name);
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
    int now = inFlight.incrementAndGet();
    int seen = peak.get();
    while (now > seen && !peak.compareAndSet(seen, now)) {
      seen = peak.get();
    }
  }

  void callEnded() {
    inFlight.decrementAndGet();
  }

  void callQuarantined() {
    quarantinedCalls.incrementAndGet();
  }

  // --- size

  /** One resize: at most one an interval, on the interval's peak. */
  void resize() {
    // The next interval starts from the calls still open, not from 0.
    int reached = peak.getAndSet(inFlight.get());
    List<MemberHealth> now = List.copyOf(group.members());
    int wanted = sizer.next(now.size(), reached);
    if (wanted == now.size()) {
      return;
    }
    LOG.info(
        "{}: {} channels for a peak of {} calls, resize to {}",
        name(),
        now.size(),
        reached,
        wanted);
    for (int i = now.size(); i < wanted; i++) {
      PooledChannel member = create();
      background.add(warm(List.of(member)).doFinally(end -> join(member)).subscribe());
    }
    now.stream()
        .sorted(FIRST_TO_GO)
        .limit(Math.max(0, now.size() - wanted))
        .forEach(
            health -> {
              PooledChannel member = live.get(health.name());
              if (member != null) {
                drop(member);
              }
            });
  }

  /** Those that serve nobody go first, then those with the least to finish. */
  private static final Comparator<MemberHealth> FIRST_TO_GO =
      Comparator.comparing((MemberHealth m) -> m.status() == MemberStatus.HEALTHY)
          .thenComparingInt(MemberHealth::open);

  private PooledChannel create() {
    String name = settings.name() + "-" + sequence.incrementAndGet();
    ConnectionWatch watch = new ConnectionWatch();
    ManagedChannel channel = Objects.requireNonNull(channels.apply(watch), "channels gave null");
    PooledChannel member = new PooledChannel(name, channel, probe, watch);
    live.put(name, member);
    return member;
  }

  private void join(PooledChannel member) {
    if (closed.get()) {
      member.channel().shutdownNow();
      live.remove(member.name());
    } else {
      group.add(member);
    }
  }

  /** Out of the choice now, shut down when the last open call has ended: none is cut. (BT-5) */
  private void drop(PooledChannel member) {
    group
        .remove(member)
        .subscribe(
            null,
            null,
            () -> {
              member.channel().shutdown();
              live.remove(member.name());
            });
  }

  /**
   * Connects and probes in the background; failures are logged, in one line, and no more. (BT-2)
   */
  private Mono<Void> warm(List<PooledChannel> members) {
    if (!settings.warming()) {
      return Mono.empty();
    }
    return Flux.fromIterable(members)
        .flatMap(this::warmingFailure, Math.max(1, members.size()))
        .collectList()
        .doOnNext(
            failures -> {
              if (!failures.isEmpty() && !closed.get()) {
                LOG.warn(
                    "{}: {} of {} new channels to {} could not be warmed and are used all the same: {}",
                    name(),
                    failures.size(),
                    members.size(),
                    members.get(0).channel().authority(),
                    failures.get(0));
              }
            })
        .then();
  }

  /** Warms one; why it could not be, or nothing. */
  private Mono<String> warmingFailure(PooledChannel member) {
    Duration limit = settings.warmTimeout();
    return Mono.defer(
            () -> {
              member.channel().getState(true);
              return member.prepareProbe().then(member.probe());
            })
        .filter(answer -> answer != ProbeAnswer.ANSWERED)
        .map(answer -> Causes.text(member.probeFailure(), answer))
        .timeout(limit, Mono.just("no answer within " + limit), settings.scheduler())
        .onErrorResume(e -> Mono.just(Causes.text(e, "")));
  }

  /** For progress lines and tests: whether a channel's connection is up. */
  ConnectivityState state(String channel) {
    PooledChannel member = live.get(channel);
    return member == null ? ConnectivityState.SHUTDOWN : member.channel().getState(false);
  }
}
