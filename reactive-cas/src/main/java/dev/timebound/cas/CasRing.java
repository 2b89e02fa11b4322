package dev.timebound.cas;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.grpc.ConnectionLoops;
import dev.timebound.grpc.DeliveryExecutor;
import dev.timebound.health.Candidates;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.HealthPolicy;
import io.grpc.ManagedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;

/**
 * A ring of content-addressable stores, within the {@link dev.timebound.deadline.Deadline} of the
 * Reactor Context. A shard that is dead fails its calls at once in place of letting them wait, and
 * what it holds is read from the shards that follow it.
 *
 * <p>Every Mono and Flux is cold: a subscription is a call. Thread-safe. Close it when done: calls
 * still open end with UNAVAILABLE.
 */
public final class CasRing implements AutoCloseable {
  /** CAS-20: this many connectivity failures in a row make a shard suspect. */
  private static final int FAILURES = 3;

  private final RingSettings settings;
  private final ShardSelector selector;
  private final List<Shard> shards = new ArrayList<>();
  private final ConnectionLoops loops;
  private final DeliveryExecutor delivery;
  private final HealthEngine engine;
  private final boolean ownEngine;
  private final HealthGroup<Shard> group;
  private final ShardCalls calls;
  private final AtomicBoolean closed = new AtomicBoolean();

  CasRing(CasRingBuilder builder, RingSettings settings) {
    this.settings = settings;
    this.selector = builder.selector();
    this.loops = ConnectionLoops.create("timebound-cas-io");
    this.delivery = DeliveryExecutor.create("timebound-cas", builder.deliverOn());
    HealthEngine given = builder.healthEngine();
    this.ownEngine = given == null;
    this.engine = given == null ? builder.newEngine(settings.scheduler()) : given;
    try {
      this.group =
          engine.group(
              settings.name(),
              HealthPolicy.consecutiveFailures(FAILURES).cooldown(settings.cooldown()).build());
    } catch (RuntimeException nameTaken) {
      loops.close(delivery::close);
      throw nameTaken;
    }
    CasMeters meters = CasMeters.of(builder.meters(), settings.name());
    Function<Endpoint, ManagedChannel> opener =
        endpoint -> loops.build(builder.newChannel(endpoint, delivery.executor()));
    for (CasConfig.Shard shard : builder.config().shards()) {
      ShardConnection connection = new ShardConnection(shard, settings, opener, meters);
      Shard member = new Shard(shards.size(), shard.name(), shard.instanceName(), connection);
      shards.add(member);
      group.add(member);
    }
    this.calls =
        new ShardCalls(settings, builder.headerSource(), builder.tokens(settings.scheduler()));
    shards.forEach(shard -> shard.connection().start());
  }

  /** A ring of these shards, with the defaults of {@link CasRingBuilder}. */
  public static CasRingBuilder builder(CasConfig config) {
    return new CasRingBuilder(config);
  }

  /** How each shard stands, as the health engine sees it. */
  public HealthGroup<?> health() {
    return group;
  }

  // --- what the parts share

  RingSettings settings() {
    return settings;
  }

  ShardCalls calls() {
    return calls;
  }

  /** The digest's home, where it is written. */
  Shard home(Digest digest) {
    return shards.get(selector.home(digest));
  }

  /** The shards in the order in which a read of this digest tries them. */
  List<Shard> order(Digest digest) {
    int[] candidates = selector.candidates(digest);
    List<Shard> order = new ArrayList<>(candidates.length);
    for (int shard : candidates) {
      order.add(shards.get(shard));
    }
    return order;
  }

  /** Claims of these shards, one after the other, with their health taken into account. */
  Candidates<Shard> claims(List<Shard> order) {
    return group.inOrder(order, null);
  }

  List<Shard> shards() {
    return shards;
  }

  /** Calls open on all channels; for tests that nothing is left. */
  int openCalls() {
    return shards.stream().mapToInt(shard -> shard.connection().openCalls()).sum();
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      shards.forEach(shard -> shard.connection().close());
      engine.remove(group);
      if (ownEngine) {
        engine.close();
      }
      loops.close(delivery::close);
    }
  }
}
