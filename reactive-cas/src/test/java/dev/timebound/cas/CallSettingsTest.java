package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.cas.kit.TestCertificates;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What a ring's settings make of its calls. */
class CallSettingsTest {
  private final List<TestRing> rings = new ArrayList<>();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    TestRing made = TestRing.of(shards, settings);
    rings.add(made);
    return made;
  }

  @AfterEach
  void close() {
    rings.forEach(TestRing::close);
  }

  private static Status.Code code(Throwable failure) {
    return ((StatusRuntimeException) failure).getStatus().getCode();
  }

  @Nested
  class Token {
    private final AtomicInteger fetched = new AtomicInteger();
    private final AtomicReference<String> present = new AtomicReference<>("one");

    private final Mono<String> source =
        Mono.fromSupplier(
            () -> {
              fetched.incrementAndGet();
              return present.get();
            });

    @Test
    @DisplayName(
        "CAS-4 the token is fetched once for all calls, and once again for a burst refused")
    void burst() {
      TestRing t = ring(2, settings -> settings.tokenSource(source));
      t.servers.forEach(server -> server.requireToken("one"));
      Digest digest = t.put(0, 0);
      Flux.range(0, 20).flatMap(i -> t.ring.readAll(digest)).blockLast(LONG);
      assertThat(fetched).hasValue(1);

      present.set("two");
      t.servers.forEach(server -> server.requireToken("two"));
      Flux.range(0, 20).flatMap(i -> t.ring.readAll(digest)).blockLast(LONG);
      assertThat(t.ring.findMissing(Set.of(digest, t.put(1))).block(LONG)).isNotNull();

      assertThat(fetched).hasValue(2);
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-4 a unary call is tried once more too, and only once")
    void unary() {
      TestRing t = ring(1, settings -> settings.tokenSource(source));
      Digest digest = t.put(0, 0);
      t.ring.findMissing(Set.of(digest)).block(LONG);
      present.set("two");
      t.server(0).requireToken("two");
      BlobPresence found = t.ring.findMissing(Set.of(digest)).block(LONG);
      assertThat(found).isNotNull();
      assertThat(found.present()).containsExactly(digest);

      t.time.advanceTimeBy(Duration.ofSeconds(1));
      t.server(0).requireToken("three");
      int before = t.server(0).findMissing().calls().size();
      BlobPresence refused = t.ring.findMissing(Set.of(digest)).block(LONG);
      assertThat(refused).isNotNull();
      assertThat(refused.unknown().get(digest)).hasMessageContaining("UNAUTHENTICATED");
      assertThat(t.server(0).findMissing().calls()).hasSize(before + 2);
    }

    @Test
    @DisplayName("CAS-4 a token that is refused again is the answer")
    void refusedAgain() {
      TestRing t = ring(1, settings -> settings.tokenSource(source));
      t.server(0).requireToken("another");

      assertThat(code(failure(t.ring.read(t.put(0, 0))))).isEqualTo(Status.Code.UNAUTHENTICATED);
      assertThat(t.reads(0)).isEqualTo(2);
      assertThat(fetched).hasValue(2);
    }

    @Test
    @DisplayName("CAS-4 of a server that refuses every token another one is fetched once a second")
    void refusedForGood() {
      TestRing t = ring(1, settings -> settings.tokenSource(source));
      t.server(0).requireToken("another");
      Digest digest = t.put(0, 0);
      for (int i = 0; i < 5; i++) {
        assertThat(code(failure(t.ring.read(digest)))).isEqualTo(Status.Code.UNAUTHENTICATED);
        assertThat(code(failure(t.ring.write("x".getBytes(UTF_8)))))
            .isEqualTo(Status.Code.UNAUTHENTICATED);
      }
      assertThat(fetched).hasValue(2);
      t.time.advanceTimeBy(Duration.ofSeconds(1));
      assertThat(code(failure(t.ring.read(digest)))).isEqualTo(Status.Code.UNAUTHENTICATED);
      assertThat(fetched).hasValue(3);
    }

    @ParameterizedTest
    @ValueSource(strings = {"secret\n", "sec ret", "\u00e9secret", ""})
    @DisplayName("CAS-20a a token that no header can carry is refused here, and not told")
    void noHeader(String token) {
      TestRing t = ring(1, settings -> settings.tokenSource(Mono.just(token)));
      assertThat(failure(t.ring.read(t.put(0, 0))))
          .hasMessageContaining("UNAUTHENTICATED: no token: the source's ")
          .hasMessageNotContaining("secret")
          .hasMessageNotContaining("sec ret");
      assertThat(t.reads(0)).isZero();
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-1 a ring that closes ends the calls that wait for a token")
    void closes() {
      TestRing t =
          ring(1, settings -> settings.rpcTimeout(Duration.ZERO).tokenSource(Mono.never()));
      Digest digest = t.put(0, 0);
      CompletableFuture<@Nullable Throwable> read = end(t.ring.read(digest));
      CompletableFuture<@Nullable Throwable> write = end(t.ring.write("x".getBytes(UTF_8)));
      t.ring.close();
      t.passUntilDone(read, Duration.ofMillis(100));
      t.passUntilDone(write, Duration.ofMillis(100));
      assertThat(code(read.join())).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(code(write.join())).isEqualTo(Status.Code.UNAVAILABLE);
    }

    @Test
    @DisplayName("CAS-20a a source that fails is no shard's failure, and is asked again")
    void sourceFails() {
      AtomicInteger asked = new AtomicInteger();
      Mono<String> failing =
          Mono.defer(
              () ->
                  asked.incrementAndGet() <= 4
                      ? Mono.error(new IllegalStateException("no key"))
                      : Mono.just("one"));
      TestRing t = ring(1, settings -> settings.tokenSource(failing));
      Digest digest = t.put(0, 0);
      for (int i = 0; i < 4; i++) {
        assertThat(failure(t.ring.read(digest)))
            .hasMessageContaining("UNAUTHENTICATED")
            .hasMessageContaining("no key");
      }

      t.readsRight(digest);
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
      assertThat(t.reads(0)).isEqualTo(1);
    }

    @Test
    @DisplayName("CAS-20a a source that hangs is no shard's failure")
    void sourceHangs() {
      TestRing t =
          ring(
              1,
              settings ->
                  settings.retries(0).rpcTimeout(Duration.ofSeconds(2)).tokenSource(Mono.never()));
      Digest digest = t.put(0, 0);
      for (int i = 0; i < 4; i++) {
        CompletableFuture<@Nullable Throwable> read = end(t.ring.read(digest));
        CompletableFuture<@Nullable Throwable> lookup = end(t.ring.findMissing(Set.of(digest)));
        t.passUntilDone(read, Duration.ofSeconds(1));
        t.passUntilDone(lookup, Duration.ofSeconds(1));
        assertThat(read.join()).isNotNull();
      }

      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }
  }

  @Nested
  class Headers {
    private final Metadata.Key<String> key =
        Metadata.Key.of("x-build", Metadata.ASCII_STRING_MARSHALLER);

    private Metadata with(String value) {
      Metadata headers = new Metadata();
      headers.put(key, value);
      return headers;
    }

    @Test
    @DisplayName("CAS-1 every call carries the headers")
    void fixed() {
      TestRing t = ring(1, settings -> settings.headers(with("b1")));
      Digest digest = t.put(0, 0);
      t.readsRight(digest);
      t.ring.findMissing(Set.of(digest)).block(LONG);

      assertThat(t.server(0).calls())
          .hasSize(2)
          .allMatch(call -> "b1".equals(call.header("x-build")));
    }

    @Test
    @DisplayName("CAS-1 headers may be made for each call from its Context")
    void fromContext() {
      TestRing t =
          ring(1, settings -> settings.headers(c -> with(c.hasKey("id") ? c.get("id") : "none")));
      Digest digest = t.put(0, 0);
      t.ring.readAll(digest).contextWrite(c -> c.put("id", "mine")).block(LONG);
      t.readsRight(digest);

      assertThat(t.server(0).calls())
          .extracting(call -> call.header("x-build"))
          .containsExactly("mine", "none");
    }
  }

  @Nested
  class Naming {
    @Test
    @DisplayName("CAS-30 the instance's name is the shard's own")
    void instance() {
      try (ScriptedCas server = ScriptedCas.builder().instanceName("main/a").start();
          CasRing ring =
              CasRing.builder(
                      new CasConfig(
                          List.of(
                              new CasConfig.Shard(
                                  "s0",
                                  1,
                                  List.of(CasConfig.Endpoint.parse(server.hostAndPort())),
                                  "main/a"))))
                  .build()) {
        Digest digest = server.put("content");

        assertThat(TestRing.text(ring.readAll(digest)).block(LONG)).isEqualTo("content");
        assertThat(ring.findMissingStrict(Set.of(digest)).block(LONG)).isEmpty();
      }
    }
  }

  @Nested
  class Tls {
    @TempDir Path directory;

    @Test
    @DisplayName("CAS-1 TLS with trusted certificates, and mutual TLS with one's own")
    void both() {
      TestCertificates certificates = TestCertificates.in(directory);
      try (ScriptedCas plain = ScriptedCas.builder().tls(certificates).start();
          ScriptedCas mutual = ScriptedCas.builder().mutualTls(certificates).start();
          CasRing one =
              CasRing.builder(config(plain)).tls(certificates.serverCertificate()).build();
          CasRing two =
              CasRing.builder(config(mutual))
                  .tls(
                      certificates.serverCertificate(),
                      certificates.clientCertificate(),
                      certificates.clientKey())
                  .build();
          CasRing nobody =
              CasRing.builder(config(mutual))
                  .retries(0)
                  .tls(certificates.serverCertificate())
                  .build();
          CasRing stranger = CasRing.builder(config(plain)).retries(0).tls().build()) {
        Digest digest = plain.put("content");
        mutual.put("content");

        assertThat(TestRing.text(one.readAll(digest)).block(LONG)).isEqualTo("content");
        assertThat(TestRing.text(two.readAll(digest)).block(LONG)).isEqualTo("content");
        assertThat(code(failure(nobody.read(digest)))).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(code(failure(stranger.read(digest)))).isEqualTo(Status.Code.UNAVAILABLE);
      }
      assertThatThrownBy(() -> CasRing.builder(config(1)).tls(directory.resolve("none")))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("expected: a PEM file");
    }

    @Test
    @DisplayName("CAS-1 files that are not what they should be are refused by name, and at once")
    void refused() {
      TestCertificates files = TestCertificates.in(directory);
      CasRingBuilder ring = CasRing.builder(config(1));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> ring.tls(files.serverKey()))
          .withMessageStartingWith("tls: trusted " + files.serverKey())
          .withMessageContaining("(expected: certificates, as PEM)");
      assertThatIllegalArgumentException()
          .isThrownBy(
              () ->
                  ring.tls(files.serverCertificate(), files.clientKey(), files.clientCertificate()))
          .withMessageStartingWith("tls: certificates " + files.clientKey());
      assertThatIllegalArgumentException()
          .isThrownBy(
              () ->
                  ring.tls(
                      files.serverCertificate(),
                      files.clientCertificate(),
                      files.clientCertificate()))
          .withMessageStartingWith("tls: privateKey " + files.clientCertificate());
    }

    private CasConfig config(ScriptedCas server) {
      return config(server.port());
    }

    private CasConfig config(int port) {
      return new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:" + port)));
    }
  }

  @Nested
  class KeepAlive {
    @Test
    @DisplayName("CAS-5 a silent connection is sent a PING while a call is open, and else none")
    void onlyWithCalls() {
      try (ScriptedCas server = ScriptedCas.start();
          FaultProxy busy = FaultProxy.to("127.0.0.1", server.port());
          FaultProxy quiet = FaultProxy.to("127.0.0.1", server.port());
          CasRing withCall = to(busy);
          CasRing without = to(quiet)) {
        Digest digest = server.put("content");
        withCall.readAll(digest).block(LONG);
        without.readAll(digest).block(LONG);
        server.reads().next(CasScript.silence());
        withCall.read(digest).subscribe(piece -> {}, late -> {});
        server.reads().awaitCall(3);
        Patience.rest(); // what the connections say of themselves
        long sent = busy.bytesToServer();
        long idle = quiet.bytesToServer();

        until("a PING is sent", () -> busy.bytesToServer() > sent);
        Patience.rest();

        assertThat(quiet.bytesToServer()).isEqualTo(idle);
      }
    }

    private CasRing to(FaultProxy proxy) {
      return CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s0", proxy.hostAndPort()))))
          .keepAliveTime(Duration.ofSeconds(10))
          .build();
    }
  }

  @Nested
  class Meters {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private double count(String name, String... tags) {
      Counter counter = registry.find(name).tags(tags).counter();
      return counter == null ? 0 : counter.count();
    }

    @Test
    @DisplayName("CAS-21 reads, bytes, failovers, resumes and mismatches are counted")
    void counted() {
      TestRing t = ring(3, settings -> settings.meters(registry).resumeMidStream(true).retries(0));
      byte[] content = t.contentOf(0, 1000);
      Digest digest = t.put(content, 0, 1);
      t.readsRight(digest);
      t.server(0)
          .reads()
          .next(
              CasScript.status(Status.UNAVAILABLE),
              CasScript.correct()
                  .chunkSize(400)
                  .stopAfter(1, dev.timebound.cas.kit.CasEnd.status(Status.UNAVAILABLE)),
              CasScript.correct().wrongByteAt(1));
      t.readsRight(digest);
      t.readsRight(digest);
      failure(t.ring.read(digest));
      t.server(0).findMissing().next(CasScript.status(Status.UNAVAILABLE));
      t.ring.findMissing(Set.of(digest)).block(LONG);
      t.ring.read(digest).take(1).blockLast(LONG);

      Timer ok = registry.find("timebound.cas.reads").tags("outcome", "ok", "ring", "cas").timer();
      assertThat(ok).isNotNull();
      assertThat(ok.count()).isGreaterThanOrEqualTo(3);
      assertThat(registry.find("timebound.cas.reads").tags("outcome", "data_loss").timer())
          .isNotNull();
      assertThat(count("timebound.cas.read.bytes")).isEqualTo(4000);
      assertThat(count("timebound.cas.failovers", "from", "s0", "to", "s1")).isEqualTo(2);
      assertThat(count("timebound.cas.resumes")).isEqualTo(1);
      assertThat(count("timebound.cas.mismatches")).isEqualTo(1);
      assertThat(count("timebound.cas.lookup.failures", "shard", "s0")).isEqualTo(1);

      t.kill(2);
      until("it is counted", () -> count("timebound.cas.connect.failures") >= 1);
    }

    @Test
    @DisplayName("CAS-20 each call to a shard is counted, by shard, operation and outcome")
    void calls() {
      TestRing t = ring(2, settings -> settings.meters(registry).retries(0));
      Digest digest = t.put(0, 0, 1);
      t.readsRight(digest);
      t.server(0).reads().next(CasScript.status(Status.UNAVAILABLE));
      t.readsRight(digest);
      failure(t.ring.read(t.put(0)));
      t.ring.write(t.contentOf(1, 10)).block(LONG);
      t.server(1).writes().next(CasScript.status(Status.INVALID_ARGUMENT));
      failure(t.ring.write(t.contentOf(1, 10)));
      t.ring.findMissing(Set.of(digest)).block(LONG);
      t.server(0).reads().always(CasScript.silence());
      var given = t.ring.read(digest).subscribe();
      t.server(0).reads().awaitCall(4);
      given.dispose();

      assertThat(calls("s0", "read", "ok")).isEqualTo(1);
      assertThat(calls("s0", "read", "unavailable")).isEqualTo(1);
      assertThat(calls("s1", "read", "ok")).isEqualTo(1);
      assertThat(calls("s0", "read", "not_found")).isEqualTo(1);
      assertThat(calls("s0", "read", "cancelled")).isEqualTo(1);
      assertThat(calls("s1", "get-capabilities", "ok")).isEqualTo(1);
      assertThat(calls("s1", "write", "ok")).isEqualTo(1);
      assertThat(calls("s1", "write", "invalid_argument")).isEqualTo(1);
      assertThat(calls("s0", "find-missing-blobs", "ok")).isEqualTo(1);
    }

    private double calls(String shard, String operation, String outcome) {
      return count(
          "timebound.cas.calls", "shard", shard, "operation", operation, "outcome", outcome);
    }

    @Test
    @DisplayName("CAS-20 a call whose like was counted before makes nothing to be counted")
    void nothingIsMade() {
      CasMeters meters = CasMeters.of(registry, "cas");
      String method = "google.bytestream.ByteStream/Read";
      var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
      long least = Long.MAX_VALUE;
      for (int i = 0; i < 20; i++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int n = 0; n < 1000; n++) {
          meters.called("s0", method, CasMeters.OK);
        }
        least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
      }
      assertThat(least).isLessThan(1000);
      assertThat(calls("s0", "read", "ok")).isEqualTo(20_000);
    }
  }
}
