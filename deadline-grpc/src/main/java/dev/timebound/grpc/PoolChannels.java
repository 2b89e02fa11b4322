package dev.timebound.grpc;

import dev.timebound.health.HealthGroup;
import dev.timebound.health.ProbeAnswer;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The channels of a pool: made, warmed, put into the choice, taken out of it, shut down. */
final class PoolChannels {
  private static final Logger LOG = LoggerFactory.getLogger(ChannelPool.class);

  private final ChannelPoolSettings settings;
  private final Function<? super ConnectionWatch, ? extends ManagedChannel> channels;
  private final ChannelProbe probe;
  private final HealthGroup<PooledChannel> group;
  private final Consumer<PooledChannel> made;

  /** By name; those that drain too, until they are shut down. */
  private final ConcurrentHashMap<String, PooledChannel> live = new ConcurrentHashMap<>();

  private final AtomicInteger sequence = new AtomicInteger();
  private final AtomicLong offenders = new AtomicLong();
  private volatile boolean closed;

  /** What the close shut down; null before it. */
  private volatile @Nullable List<ManagedChannel> atClose;

  /**
   * @param made told of each new channel
   */
  PoolChannels(
      ChannelPoolBuilder builder, HealthGroup<PooledChannel> group, Consumer<PooledChannel> made) {
    this.settings = builder.settings();
    this.channels = builder.channels;
    this.probe = builder.probe;
    this.group = group;
    this.made = made;
  }

  PooledChannel create() {
    String name = settings.name() + "-" + sequence.incrementAndGet();
    LoopWatch loop =
        new LoopWatch(
            () -> settings.scheduler().now(TimeUnit.NANOSECONDS), settings.loopPatienceNanos());
    ConnectionWatch watch = new ConnectionWatch(loop);
    ManagedChannel channel;
    try {
      channel = Objects.requireNonNull(channels.apply(watch), "channels gave null");
      watch.belongsTo(channel);
    } catch (Throwable e) {
      watch.abandoned();
      throw e;
    }
    PooledChannel member = new PooledChannel(name, channel, probe, watch, settings.cancelPacer());
    member.ownedBy(this);
    live.put(name, member);
    made.accept(member);
    return member;
  }

  @Nullable PooledChannel get(String name) {
    return live.get(name);
  }

  /** Those not shut down yet: in the choice, in the making, and those that drain. */
  List<PooledChannel> live() {
    return List.copyOf(live.values());
  }

  /** Channels in the choice. */
  List<PooledChannel> inService() {
    return group.members().stream()
        .map(health -> live.get(health.name()))
        .filter(Objects::nonNull)
        .toList();
  }

  boolean isInService(PooledChannel member) {
    return group.health(member.name()) != null;
  }

  void join(PooledChannel member) {
    if (closed) {
      discard(member);
    } else {
      group.add(member);
    }
  }

  /** Out of the choice now, shut down when the last open call has ended: none is cut. (BT-5) */
  void drop(PooledChannel member) {
    retire(member, group.remove(member));
  }

  /**
   * It has left the choice.
   *
   * @param ended completes when its last open call has ended
   */
  void retire(PooledChannel member, Mono<Void> ended) {
    ended.subscribe(
        null,
        null,
        () -> {
          member.channel().shutdown();
          whenReset(member, () -> live.remove(member.name()));
        });
    if (member.isUnconnected() && member.state(false) != ConnectivityState.READY) {
      // What waits there was never sent and never will be; it can be sent elsewhere.
      member.channel().shutdownNow();
    }
  }

  /**
   * Until its server has heard of every cancel its connection stands, and a close is to know it.
   */
  private static void whenReset(PooledChannel member, Runnable then) {
    CancelPacer pacer = member.pacer();
    if (pacer == null) {
      then.run();
    } else {
      pacer.whenIdle(then);
    }
  }

  /** A repeat offender, whose replacement the engine had answer a probe. (BT-18) */
  void replacedByEngine(PooledChannel member, Mono<Void> ended) {
    offenders.incrementAndGet();
    retire(member, ended);
  }

  /** Repeat offenders replaced so far. */
  long offenders() {
    return offenders.get();
  }

  /** One that nobody got to use. */
  void discard(PooledChannel member) {
    member.channel().shutdownNow();
    live.remove(member.name());
  }

  void closed() {
    closed = true;
    List<PooledChannel> members = live();
    for (PooledChannel member : members) {
      drop(member);
      member.channel().shutdownNow();
      CancelPacer pacer = member.pacer();
      if (pacer != null) {
        pacer.close();
      }
    }
    atClose = members.stream().map(PooledChannel::channel).toList();
  }

  boolean isTerminated() {
    List<ManagedChannel> last = atClose;
    return last != null && last.stream().allMatch(ManagedChannel::isTerminated);
  }

  // --- warm

  /**
   * A new channel, connecting, not in the choice: whoever gets it joins or discards it. Cold; each
   * subscription makes one.
   */
  Mono<PooledChannel> fresh() {
    return Mono.fromSupplier(
        () -> {
          PooledChannel member = create();
          member.state(true);
          return member;
        });
  }

  /**
   * Puts a new channel in the old one's place once it has answered a probe; the old one finishes
   * what it has. Where none can be had, or none answers within the limit, the old one stays. (BT-6,
   * BT-44)
   *
   * @return whether it was replaced; an error says why not. False where the old one left meanwhile,
   *     or {@code still} says that it is not to be replaced any more
   */
  Mono<Boolean> replace(PooledChannel old, BooleanSupplier still) {
    return fresh()
        .flatMap(
            by ->
                warmingFailure(by)
                    .flatMap(why -> Mono.<Boolean>error(new IllegalStateException(why)))
                    .switchIfEmpty(Mono.fromSupplier(() -> swap(old, by, still)))
                    .doOnError(e -> discard(by))
                    .doOnCancel(() -> discard(by)));
  }

  private boolean swap(PooledChannel old, PooledChannel by, BooleanSupplier still) {
    if (closed || !isInService(old) || !still.getAsBoolean()) {
      discard(by);
      return false;
    }
    group.add(by);
    drop(old);
    return true;
  }

  /**
   * Connects and probes in the background; failures are logged, in one line, and no more. (BT-2)
   */
  Mono<Void> warm(List<PooledChannel> members) {
    if (!settings.warming()) {
      return Mono.empty();
    }
    return Flux.fromIterable(members)
        .flatMap(this::warmingFailure, Math.max(1, members.size()))
        .collectList()
        .doOnNext(
            failures -> {
              if (!failures.isEmpty() && !closed) {
                LOG.warn(
                    "{}: {} of {} new channels to {} could not be warmed and are used all the same: {}",
                    settings.name(),
                    failures.size(),
                    members.size(),
                    members.get(0).channel().authority(),
                    failures.get(0));
              }
            })
        .then();
  }

  /** Connects and probes one; why that failed, or nothing where it answered. */
  private Mono<String> warmingFailure(PooledChannel member) {
    Duration limit = settings.warmTimeout();
    return Mono.defer(
            () -> {
              member.state(true);
              return member.prepareProbe().then(member.probe());
            })
        .filter(answer -> answer != ProbeAnswer.ANSWERED)
        .map(answer -> Causes.text(member.probeFailure(), answer))
        .timeout(limit, Mono.just("no answer within " + limit), settings.scheduler())
        .onErrorResume(e -> Mono.just(Causes.text(e, "")));
  }
}
