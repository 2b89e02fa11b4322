package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
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
final class TestRing implements AutoCloseable {
  final List<ScriptedCas> servers = new ArrayList<>();
  final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  final CasRing ring;
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

  static TestRing of(int shards) {
    return of(shards, settings -> settings);
  }

  static TestRing of(int shards, UnaryOperator<CasRingBuilder> settings) {
    return new TestRing(shards, settings);
  }

  void awaitConnected() {
    for (Shard shard : ring.shards().all()) {
      until("connected to " + shard, () -> end(shard.connection().channel(false)).join() == null);
    }
  }

  ScriptedCas server(int i) {
    return servers.get(i);
  }

  /** Content whose home is that shard, on no server yet. */
  byte[] contentOf(int home, int size) {
    while (true) {
      byte[] content = new byte[size];
      random.nextBytes(content);
      if (selector.home(Digest.of(content)) == home) {
        return content;
      }
    }
  }

  /** A text whose home is that shard, put on these servers. */
  Digest put(int home, int... on) {
    return put(contentOf(home, 100), on);
  }

  Digest put(byte[] content, int... on) {
    for (int server : on) {
      servers.get(server).put(content);
    }
    return Digest.of(content);
  }

  /** How it ends: null where it succeeds. */
  static CompletableFuture<@Nullable Throwable> end(Publisher<?> call) {
    CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();
    Flux.from(call).subscribe(value -> {}, end::complete, () -> end.complete(null));
    return end.orTimeout(LONG.toSeconds(), TimeUnit.SECONDS);
  }

  static Throwable failure(Publisher<?> call) {
    Throwable failure = end(call).join();
    assertThat(failure).isNotNull();
    return failure;
  }

  static byte[] joined(List<ByteBuffer> pieces) {
    ByteBuffer all = ByteBuffer.allocate(pieces.stream().mapToInt(ByteBuffer::remaining).sum());
    pieces.forEach(piece -> all.put(piece.duplicate()));
    return all.array();
  }

  /** Reads it whole, in real time. */
  byte[] bytes(Digest digest) {
    byte[] bytes = ring.readAll(digest).block(LONG);
    assertThat(bytes).isNotNull();
    return bytes;
  }

  void readsRight(Digest digest) {
    assertThat(Digest.of(bytes(digest))).isEqualTo(digest);
  }

  MemberStatus status(int shard) {
    MemberHealth health = ring.health().health("s" + shard);
    assertThat(health).isNotNull();
    return health.status();
  }

  /** Lets virtual time pass. */
  void pass(Duration time) {
    this.time.advanceTimeBy(time);
  }

  /** Lets virtual time pass until the future is done. */
  void passUntilDone(CompletableFuture<?> future, Duration step) {
    until(
        "it ends",
        () -> {
          time.advanceTimeBy(step);
          return future.isDone();
        });
  }

  /** The server is killed, and the ring has seen that nobody can be connected to. */
  void kill(int shard) {
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
  void makeSuspect(int shard) {
    for (int i = 0; i < 3; i++) {
      failure(ring.read(put(shard)));
    }
    assertThat(status(shard)).isEqualTo(MemberStatus.QUARANTINED);
  }

  int reads(int server) {
    return server(server).reads().calls().size();
  }

  static Mono<String> text(Mono<byte[]> bytes) {
    return bytes.map(all -> new String(all, StandardCharsets.UTF_8));
  }

  /** Nothing is left: no call on either side, no claim. */
  @Override
  public void close() {
    until("no claim is open", () -> ring.health().openClaims() == 0);
    until("no call is open", () -> ring.openCalls() == 0);
    ring.close();
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

  static String names(Object... all) {
    return Arrays.toString(all);
  }
}
