package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

/** Scripted stores, and a ring of them whose timers run in virtual time. */
public final class TestRing implements AutoCloseable {
  public final List<ScriptedCas> servers = new ArrayList<>();
  public final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  public final CasRing ring;
  private final Random random = new Random(7);
  private final ShardSelector selector;

  private TestRing(int shards, UnaryOperator<CasRingBuilder> settings) {
    List<CasConfig.Shard> config = new ArrayList<>();
    for (int i = 0; i < shards; i++) {
      ScriptedCas server = ScriptedCas.start();
      servers.add(server);
      config.add(CasConfig.Shard.of("s" + i, server.hostAndPort()));
    }
    CasConfig all = new CasConfig(config);
    selector = all.weighted();
    ring = settings.apply(CasRing.builder(all).scheduler(time)).build();
    awaitConnected();
  }

  public static TestRing of(int shards) {
    return of(shards, settings -> settings);
  }

  public static TestRing of(int shards, UnaryOperator<CasRingBuilder> settings) {
    return new TestRing(shards, settings);
  }

  public void awaitConnected() {
    for (Shard shard : ring.shards().all()) {
      until("connected to " + shard, () -> end(shard.connection().channel(false)).join() == null);
    }
  }

  public ScriptedCas server(int i) {
    return servers.get(i);
  }

  /** Content whose home is that shard, on no server yet. */
  public byte[] contentOf(int home, int size) {
    while (true) {
      byte[] content = new byte[size];
      random.nextBytes(content);
      if (selector.home(Digest.of(content)) == home) {
        return content;
      }
    }
  }

  /** A text whose home is that shard, put on these servers. */
  public Digest put(int home, int... on) {
    return put(contentOf(home, 100), on);
  }

  public Digest put(byte[] content, int... on) {
    for (int server : on) {
      servers.get(server).put(content);
    }
    return Digest.of(content);
  }

  /** How it ends: null where it succeeds. */
  public static CompletableFuture<@Nullable Throwable> end(Publisher<?> call) {
    CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();
    Flux.from(call).subscribe(value -> {}, end::complete, () -> end.complete(null));
    return end.orTimeout(LONG.toSeconds(), TimeUnit.SECONDS);
  }

  public static Throwable failure(Publisher<?> call) {
    Throwable failure = end(call).join();
    assertThat(failure).isNotNull();
    return failure;
  }

  /** OK where it is no status. */
  public static Status.Code code(@Nullable Throwable failure) {
    return failure instanceof StatusRuntimeException e ? e.getStatus().getCode() : Status.Code.OK;
  }

  public static byte[] joined(List<ByteBuffer> pieces) {
    ByteBuffer all = ByteBuffer.allocate(pieces.stream().mapToInt(ByteBuffer::remaining).sum());
    pieces.forEach(piece -> all.put(piece.duplicate()));
    return all.array();
  }

  /** Reads it whole, in real time. */
  public byte[] bytes(Digest digest) {
    byte[] bytes = ring.readAll(digest).block(LONG);
    assertThat(bytes).isNotNull();
    return bytes;
  }

  public void readsRight(Digest digest) {
    assertThat(Digest.of(bytes(digest))).isEqualTo(digest);
  }

  public MemberStatus status(int shard) {
    MemberHealth health = ring.health().health("s" + shard);
    assertThat(health).isNotNull();
    return health.status();
  }

  /** Lets virtual time pass. */
  public void pass(Duration time) {
    this.time.advanceTimeBy(time);
  }

  /** Lets virtual time pass until the future is done. */
  public void passUntilDone(CompletableFuture<?> future, Duration step) {
    until(
        "it ends",
        () -> {
          time.advanceTimeBy(step);
          return future.isDone();
        });
  }

  /**
   * Lets pauses between calls pass until the future is done; while a call is open time stands
   * still, so that no limit passes however slow the machine is.
   */
  public void passPauses(CompletableFuture<?> future) {
    until(
        "it ends",
        () -> {
          if (ring.openCalls() == 0) {
            time.advanceTimeBy(Duration.ofMillis(20));
          }
          return future.isDone();
        });
  }

  /** The server is killed, and the ring has seen that nobody can be connected to. */
  public void kill(int shard) {
    server(shard).kill();
    until(
        "it is seen that " + shard + " is dead",
        () -> {
          CompletableFuture<@Nullable Throwable> end =
              end(ring.shards().all().get(shard).connection().channel(false));
          return end.isDone() && end.join() != null;
        });
  }

  /** Makes a shard suspect by reads of a blob of its own that nobody has. */
  public void makeSuspect(int shard) {
    for (int i = 0; i < 3; i++) {
      failure(ring.read(put(shard)));
    }
    assertThat(status(shard)).isEqualTo(MemberStatus.QUARANTINED);
  }

  /** Asks each server what it can, by which the batches are packed. */
  void learnLimits() {
    for (Shard shard : ring.shards().all()) {
      ring.capabilities(shard.name()).block(LONG);
    }
  }

  public int reads(int server) {
    return server(server).reads().calls().size();
  }

  public static Mono<String> text(Mono<byte[]> bytes) {
    return bytes.map(all -> new String(all, StandardCharsets.UTF_8));
  }

  /** Nothing is left: no call on either side, no claim. */
  @Override
  public void close() {
    try {
      until("no claim is open", () -> ring.health().openClaims() == 0);
      until("no call is open", () -> ring.openCalls() == 0);
    } finally {
      ring.close(); // else the threads of this one would be found left by each test that follows
    }
    for (ScriptedCas server : servers) {
      if (server.isRunning()) {
        server.awaitOpenConnections(0);
      }
      server.close();
    }
    until(
        "no thread is left",
        () ->
            Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().startsWith("timebound-cas")));
    time.dispose();
  }
}
