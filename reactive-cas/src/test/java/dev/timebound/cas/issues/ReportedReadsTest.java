package dev.timebound.cas.issues;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.BlobNotFoundException;
import dev.timebound.cas.BlobPresence;
import dev.timebound.cas.CasConfig;
import dev.timebound.cas.CasRing;
import dev.timebound.cas.CasRingBuilder;
import dev.timebound.cas.Digest;
import dev.timebound.cas.Rings;
import dev.timebound.cas.TestRing;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.test.FaultProxy;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;

/** What users of such stores reported of other clients, by its symptom. */
class ReportedReadsTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  @Test
  @DisplayName("CAS-3 a half-open connection hangs a build for ever though a timeout was set")
  void halfOpenConnection() {
    try (ScriptedCas server = ScriptedCas.start();
        FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());
        CasRing ring =
            CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s0", proxy.hostAndPort()))))
                .rpcTimeout(Duration.ofSeconds(3))
                .gapTimeout(Duration.ofMillis(500))
                .retries(0)
                .build()) {
      byte[] content = new byte[8 << 20];
      Digest digest = server.put(content);
      AtomicInteger pieces = new AtomicInteger();
      CompletableFuture<@Nullable Throwable> open =
          end(
              ring.read(digest)
                  .doOnNext(
                      piece -> {
                        if (pieces.incrementAndGet() == 1) {
                          proxy.freezeEstablished();
                        }
                      }));

      assertThat(open.join()).hasMessageContaining("DEADLINE_EXCEEDED");
      assertThat(pieces).hasPositiveValue();
      assertThat(failure(ring.read(digest))).hasMessageContaining("DEADLINE_EXCEEDED");
      BlobPresence found = ring.findMissing(Set.of(digest)).block(LONG);
      assertThat(found).isNotNull();
      assertThat(found.unknown()).containsOnlyKeys(digest);
    }
  }

  @Test
  @DisplayName("CAS-3 an absolute 60 s limit kills a multi-gigabyte transfer that moves")
  void transferThatMoves() {
    TestRing t = ring(1, settings -> settings);
    byte[] content = t.contentOf(0, 2000);
    Digest digest = t.put(content, 0);
    t.server(0).reads().next(CasScript.correct().chunkSize(100).pace(Duration.ofMillis(20)));
    List<ByteBuffer> pieces = new java.util.concurrent.CopyOnWriteArrayList<>();
    CompletableFuture<@Nullable Throwable> read = end(t.ring.read(digest).doOnNext(pieces::add));
    // 76 s in all, and where a piece came just before, no more than two of these in one wait
    for (int i = 1; i <= 19; i++) {
      int n = i;
      until("piece " + n + " came", () -> pieces.size() >= n);
      if (pieces.size() == n) {
        t.pass(Duration.ofSeconds(4));
      }
    }

    assertThat(read.join()).isNull();
    assertThat(TestRing.joined(pieces)).isEqualTo(content);
  }

  @Test
  @DisplayName("CAS-1 \"no route to host\" until restart")
  void untilRestart() {
    TestRing t = ring(1, settings -> settings.retries(0));
    Digest digest = t.put(0, 0);
    t.kill(0);
    for (int i = 0; i < 5; i++) {
      assertThat(failure(t.ring.read(digest))).hasMessageContaining("UNAVAILABLE");
    }
    t.server(0).restart();
    t.pass(Duration.ofSeconds(5));

    t.readsRight(digest);
  }

  @Test
  @DisplayName("CAS-4 CANCELLED from a closed connection fails the build")
  void cancelledByAClosedConnection() {
    TestRing t = ring(1, settings -> settings);
    Digest digest = t.put(0, 0);
    for (CasEnd end : List.of(CasEnd.reset(8), CasEnd.resetConnection())) {
      t.server(0).reads().next(CasScript.correct().stopAfter(0, end));
      CompletableFuture<@Nullable Throwable> read = end(t.ring.read(digest));
      t.passPauses(read);
      assertThat(read.join()).isNull();
    }
  }

  @Test
  @DisplayName("CAS-21 CAS-25 one shard down fails every action")
  void oneShardDown() {
    TestRing t = ring(4, settings -> settings);
    Set<Digest> all = new HashSet<>();
    for (int i = 0; i < 40; i++) {
      all.add(t.put(i % 4, i % 4, (i + 1) % 4));
    }
    t.kill(2);

    Flux.fromIterable(all)
        .flatMap(
            digest ->
                t.ring.readAll(digest).doOnNext(b -> assertThat(Digest.of(b)).isEqualTo(digest)))
        .blockLast(LONG);
    assertThat(t.ring.findMissingStrict(all).block(LONG)).isEmpty();
  }

  @Test
  @DisplayName("CAS-30b a backend's trouble is reported as \"blob does not exist\"")
  void troubleToldAsMissing() {
    TestRing t = ring(2, settings -> settings.retries(0));
    Digest digest = t.put(0, 0);
    t.kill(0);

    assertThat(failure(t.ring.read(digest))).isNotInstanceOf(BlobNotFoundException.class);
    BlobPresence found = t.ring.findMissing(Set.of(digest)).block(LONG);
    assertThat(found).isNotNull();
    assertThat(found.missing()).isEmpty();
  }

  @Test
  @DisplayName("CAS-4 a burst of UNAUTHENTICATED when a token expires")
  void tokenExpires() {
    AtomicReference<String> token = new AtomicReference<>("old");
    AtomicInteger fetched = new AtomicInteger();
    TestRing t =
        ring(
            1,
            settings ->
                settings.tokenSource(
                    reactor.core.publisher.Mono.fromSupplier(
                        () -> {
                          fetched.incrementAndGet();
                          return token.get();
                        })));
    Digest digest = t.put(0, 0);
    t.server(0).requireToken("old");
    t.readsRight(digest);
    token.set("new");
    t.server(0).requireToken("new");

    Flux.range(0, 50).flatMap(i -> t.ring.readAll(digest)).blockLast(LONG);

    assertThat(fetched).hasValue(2);
  }

  @Test
  @DisplayName("CAS-4 endless retry on UNKNOWN")
  void endlessRetry() {
    TestRing t = ring(1, settings -> settings);
    Digest digest = t.put(0, 0);
    t.server(0).reads().always(CasScript.status(Status.UNKNOWN));
    CompletableFuture<@Nullable Throwable> read = end(t.ring.read(digest));
    t.passPauses(read);

    assertThat(read.join()).hasMessageContaining("UNKNOWN");
    assertThat(t.server(0).reads().calls()).hasSize(4);
  }
}
