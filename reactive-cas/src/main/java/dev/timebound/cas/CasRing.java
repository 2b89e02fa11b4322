package dev.timebound.cas;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.grpc.ConnectionLoops;
import dev.timebound.grpc.DeliveryExecutor;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.HealthPolicy;
import io.grpc.ManagedChannel;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

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

  private final RingShards shards;
  private final ConnectionLoops loops;
  private final DeliveryExecutor delivery;
  private final HealthEngine engine;
  private final boolean ownEngine;
  private final HealthGroup<Shard> group;
  private final ShardCalls calls;
  private final Reads reads;
  private final Lookups lookups;
  private final AtomicBoolean closed = new AtomicBoolean();

  CasRing(CasRingBuilder builder, RingSettings settings) {
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
    List<Shard> all = new ArrayList<>();
    for (CasConfig.Shard shard : builder.config().shards()) {
      ShardConnection connection = new ShardConnection(shard, settings, opener, meters);
      all.add(new Shard(all.size(), shard.name(), shard.instanceName(), connection));
    }
    all.forEach(group::add);
    this.shards = new RingShards(builder.selector(), all, group);
    this.calls =
        new ShardCalls(settings, builder.headerSource(), builder.tokens(settings.scheduler()));
    this.reads = new Reads(shards, calls, delivery, meters);
    this.lookups = new Lookups(shards, calls, meters);
    all.forEach(shard -> shard.connection().start());
  }

  /** A ring of these shards, with the defaults of {@link CasRingBuilder}. */
  public static CasRingBuilder builder(CasConfig config) {
    return new CasRingBuilder(config);
  }

  /**
   * A blob's bytes, in pieces as they come from the server, each read-only and the subscriber's to
   * keep. Their whole is checked against the digest before the last piece is handed on (CAS-30).
   *
   * <p>With every shard healthy it is one call, to the home. Where the home does not answer, or is
   * suspect, the next shards are asked, as long as no byte has reached the subscriber (CAS-21,
   * CAS-22); with {@link CasRingBuilder#resumeMidStream} after that too. The call begins with the
   * first request, and pieces are asked of the server as they are asked for here (CAS-33). The
   * empty blob is known (CAS-30).
   *
   * <p>Errors: {@link BlobNotFoundException} where its home has no such blob, {@link
   * DataLossException} where the bytes are not the digest's, {@link
   * dev.timebound.deadline.DeadlineExceededException} where the caller's deadline passed, else
   * {@link io.grpc.StatusRuntimeException}, which names the shard; where the home did not answer,
   * with the home's own error (CAS-23).
   */
  public Flux<ByteBuffer> read(Digest digest) {
    return reads.read(digest);
  }

  /**
   * A blob's bytes as one array, of the digest's size. As {@link #read}; a blob of 2 GiB or more is
   * refused with an IllegalArgumentException.
   */
  public Mono<byte[]> readAll(Digest digest) {
    return reads.readAll(digest);
  }

  /**
   * Which of these blobs are there (CAS-25): every shard is asked for its own, in parallel. Where a
   * shard does not answer, its blobs are asked of the shards that follow it: what those have is
   * present, the rest is unknown, and the blobs of all other shards are as certain as ever.
   * Requests are split, so that any number may be asked for. The empty blob is present.
   *
   * <p>Fails only with {@link dev.timebound.deadline.DeadlineExceededException}.
   */
  public Mono<BlobPresence> findMissing(Set<Digest> digests) {
    return lookups.findMissing(digests);
  }

  /**
   * Which of these blobs are missing, where that can be said of all; else {@link
   * UnknownBlobsException}. Otherwise as {@link #findMissing}.
   */
  public Mono<Set<Digest>> findMissingStrict(Set<Digest> digests) {
    return lookups.findMissing(digests).map(BlobPresence::missingOrThrow);
  }

  /** How each shard stands, as the health engine sees it. */
  public HealthGroup<?> health() {
    return group;
  }

  // --- for the parts beside this one, and for tests

  ShardCalls calls() {
    return calls;
  }

  RingShards shards() {
    return shards;
  }

  /** Calls open on all channels; for tests that nothing is left. */
  int openCalls() {
    return shards.all().stream().mapToInt(shard -> shard.connection().openCalls()).sum();
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      shards.all().forEach(shard -> shard.connection().close());
      engine.remove(group);
      if (ownEngine) {
        engine.close();
      }
      loops.close(delivery::close);
    }
  }
}
