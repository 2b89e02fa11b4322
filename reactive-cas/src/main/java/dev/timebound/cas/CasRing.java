package dev.timebound.cas;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.ConnectionLoops;
import dev.timebound.grpc.ConnectionWatch;
import dev.timebound.grpc.DeliveryExecutor;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthGroup;
import dev.timebound.health.HealthPolicy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
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
  private final Writes writes;
  private final ShardCapabilities capabilities;
  private final AtomicBoolean closed = new AtomicBoolean();

  CasRing(CasRingBuilder builder, RingSettings settings) {
    this.loops = ConnectionLoops.create("timebound-cas-io");
    this.delivery = DeliveryExecutor.create("timebound-cas", builder.deliverOn());
    HealthEngine given = builder.healthEngine();
    this.ownEngine = given == null;
    this.engine = given == null ? builder.newEngine(settings.scheduler()) : given;
    HealthGroup<Shard> made = null;
    List<Shard> all = new ArrayList<>();
    try {
      made =
          engine.group(
              settings.name(),
              HealthPolicy.consecutiveFailures(FAILURES).cooldown(settings.cooldown()).build());
      this.group = made;
      CasMeters meters = CasMeters.of(builder.meters(), settings.name());
      CasObservations observations = CasObservations.of(builder.observations(), settings.name());
      Function<Endpoint, RawChannel> opener =
          endpoint -> {
            ConnectionWatch watch = ConnectionWatch.unpooled();
            return new RawChannel(
                loops.build(builder.newChannel(endpoint, delivery.executor()), watch),
                watch::streamLimit);
          };
      for (CasConfig.Shard shard : builder.config().shards()) {
        ShardConnection connection =
            new ShardConnection(shard, settings, opener, delivery.executor(), meters);
        all.add(new Shard(all.size(), shard.name(), shard.instanceName(), connection));
      }
      all.forEach(group::add);
      this.shards = new RingShards(builder.selector(), all, group);
      this.calls =
          new ShardCalls(
              settings, builder.headerSource(), builder.tokens(settings.scheduler()), meters);
      this.capabilities = new ShardCapabilities(shards, calls);
      Compression compression =
          new Compression(settings.compression(), capabilities, settings::now);
      this.reads = new Reads(shards, calls, delivery, meters, observations, compression);
      this.lookups = new Lookups(shards, calls, meters, observations);
      this.writes = new Writes(shards, calls, capabilities, compression, meters, observations);
      all.forEach(shard -> shard.connection().start());
    } catch (Throwable e) {
      letGo(all, made);
      throw e;
    }
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
    return reads.read(Objects.requireNonNull(digest, "digest"));
  }

  /**
   * A blob's bytes as one array, of the digest's size. As {@link #read}; a blob of 2 GiB or more is
   * refused with an IllegalArgumentException.
   */
  public Mono<byte[]> readAll(Digest digest) {
    return reads.readAll(Objects.requireNonNull(digest, "digest"));
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
    requireNoNull(digests, "digests");
    return lookups.findMissing(digests);
  }

  /**
   * Which of these blobs are missing, where that can be said of all; else {@link
   * UnknownBlobsException}. Otherwise as {@link #findMissing}.
   */
  public Mono<Set<Digest>> findMissingStrict(Set<Digest> digests) {
    requireNoNull(digests, "digests");
    return lookups.check(digests, BlobPresence::missingOrThrow);
  }

  /**
   * Writes a blob to its home shard, and to no other: where that does not take it the write fails,
   * so that no blob lies where it is not looked for (CAS-26).
   *
   * <p>The content is subscribed to when the call has started, in the caller's Context, and asked
   * for as the server takes it. Each buffer is read until the Mono ends and must not be changed
   * until then. Its bytes are checked on the way: more of them than the digest says, fewer, or
   * others end the write with {@link DataLossException} before the upload is finished, so that the
   * server keeps nothing (CAS-30).
   *
   * <p>An upload that breaks goes on from what the server says it has, a few times, within the
   * caller's deadline (CAS-4). The last MiB sent is held for that; where the server has less than
   * what came before, the content is subscribed to once more and skipped up to there. Content that
   * can be subscribed to only once therefore survives only failures within its last MiB, of a blob
   * up to that size all; a write that would need it again fails with the shard's error. There is no
   * bound in all but the deadline: a server that takes nothing for gapTimeout, or that does not
   * answer for rpcTimeout once it has all, has failed (CAS-3).
   *
   * <p>A blob that the server has already ends the upload early, with success. The empty blob is
   * never sent.
   *
   * <p>Errors: {@link DataLossException}; what the content failed with, as it is; {@link
   * dev.timebound.deadline.DeadlineExceededException} where the caller's deadline passed; else
   * {@link io.grpc.StatusRuntimeException}, which names the shard.
   */
  public Mono<WriteResult> write(Digest digest, Publisher<? extends ByteBuffer> content) {
    Objects.requireNonNull(digest, "digest");
    return writes.write(digest, Objects.requireNonNull(content, "content"));
  }

  /** As {@link #write(Digest, Publisher)}, of bytes at hand, which can always be sent again. */
  public Mono<WriteResult> write(Digest digest, byte[] content) {
    Objects.requireNonNull(digest, "digest");
    Objects.requireNonNull(content, "content");
    return writes.write(digest, content);
  }

  /**
   * As {@link #write(Digest, byte[])}, under the digest that the ring's digest function makes of
   * the bytes when the Mono is subscribed to.
   */
  public Mono<WriteResult> write(byte[] content) {
    Objects.requireNonNull(content, "content");
    return Mono.defer(() -> write(Digest.of(content, calls.settings().digestFunction()), content));
  }

  /**
   * Reads many blobs, each once however often it is named, and tells of each, in no particular
   * order (CAS-31). Small ones travel in batches of their shard, the others one by one, a few of
   * each shard at once; what was read and not asked for holds back the rest.
   *
   * <p>One that could not be read fails no other: its {@link ReadManyResult#failure} is what {@link
   * #read} would have failed with. Where a shard does not answer, its blobs are asked of the next
   * ones, as {@link #findMissing} does it, in batches too. The Flux itself fails only with {@link
   * dev.timebound.deadline.DeadlineExceededException}.
   */
  public Flux<ReadManyResult> readMany(Collection<Digest> digests) {
    requireNoNull(digests, "digests");
    return reads.readMany(digests, capabilities);
  }

  /**
   * Writes many blobs, each to its home, and tells of each, in no particular order (CAS-31). Small
   * ones travel in batches, the others one by one, a few of each shard at once. The arrays must not
   * be changed until the Flux ends.
   *
   * <p>One that could not be written fails no other: its {@link WriteManyResult#failure} is what
   * {@link #write} would have failed with. The Flux itself fails only with {@link
   * dev.timebound.deadline.DeadlineExceededException}.
   */
  public Flux<WriteManyResult> writeMany(Map<Digest, byte[]> blobs) {
    Objects.requireNonNull(blobs, "blobs");
    requireNoNull(blobs.keySet(), "blobs");
    requireNoNull(blobs.values(), "blobs");
    return writes.writeMany(blobs);
  }

  /**
   * As {@link #writeMany(Map)}, under the digests that the ring's digest function makes of the
   * bytes when the Flux is subscribed to; equal ones are written once.
   */
  public Flux<WriteManyResult> writeMany(Collection<byte[]> blobs) {
    requireNoNull(blobs, "blobs");
    List<byte[]> own = List.copyOf(blobs);
    DigestFunction function = calls.settings().digestFunction();
    return Flux.defer(
        () -> {
          Map<Digest, byte[]> named = new HashMap<>();
          own.forEach(blob -> named.put(Digest.of(blob, function), blob));
          return writeMany(named);
        });
  }

  /**
   * What a shard's server says of itself: asked once, and kept (CAS-32). A server that does not
   * know the question has told nothing. Errors as of any call; a failure is not kept.
   *
   * @throws IllegalArgumentException where the ring has no shard of this name
   */
  public Mono<CasCapabilities> capabilities(String shard) {
    Objects.requireNonNull(shard, "shard");
    for (Shard each : shards.all()) {
      if (each.name().equals(shard)) {
        return Mono.deferContextual(
            context ->
                Mono.from(
                    Deadlines.<CasCapabilities>of(Deadlines.current(context), "cas.capabilities")
                        .apply(capabilities.of(each))));
      }
    }
    throw new IllegalArgumentException(
        "shard: " + shard + " (expected: one of " + shards.all() + ")");
  }

  /** How each shard stands, as the health engine sees it. */
  public HealthGroup<?> health() {
    return group;
  }

  private static void requireNoNull(Collection<?> all, String argument) {
    Objects.requireNonNull(all, argument);
    all.forEach(each -> Objects.requireNonNull(each, argument + ": null (expected: none in it)"));
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
      calls.close();
      letGo(shards.all(), group);
    }
  }

  private void letGo(List<Shard> all, @Nullable HealthGroup<Shard> left) {
    all.forEach(shard -> shard.connection().close());
    if (left != null) {
      engine.remove(left);
    }
    if (ownEngine) {
      engine.close();
    }
    loops.close(delivery::close);
  }
}
