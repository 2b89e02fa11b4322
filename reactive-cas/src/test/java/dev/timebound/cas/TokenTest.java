package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.code;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.MemberStatus;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The bearer token that calls carry. */
class TokenTest {
  private static final String NO_TOKEN = "DEADLINE_EXCEEDED: s0: waited for a token of tokenSource";

  private final AtomicInteger fetched = new AtomicInteger();
  private final AtomicReference<String> present = new AtomicReference<>("one");

  private final Mono<String> source =
      Mono.fromSupplier(
          () -> {
            fetched.incrementAndGet();
            return present.get();
          });

  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  private static Metadata authorization(String value) {
    Metadata headers = new Metadata();
    headers.put(ShardCalls.AUTHORIZATION, value);
    return headers;
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  @DisplayName("CAS-20a a source that dies by an Error has failed, and the next call asks it again")
  void sourceDies(boolean linkage) {
    AtomicInteger asked = new AtomicInteger();
    TestRing t =
        ring(
            1,
            settings ->
                settings.tokenSource(
                    Mono.fromSupplier(
                        () -> {
                          if (asked.getAndIncrement() == 0) {
                            Error dies =
                                linkage
                                    ? new NoClassDefFoundError("some/Library")
                                    : new StackOverflowError("too deep");
                            dies.setStackTrace(new StackTraceElement[0]); // Reactor logs it
                            throw dies;
                          }
                          return "one";
                        })));
    Digest digest = t.put(0, 0);
    assertThat(failure(t.ring.read(digest)))
        .hasMessageContaining("UNAUTHENTICATED: no token: java.lang." + (linkage ? "NoC" : "Sta"))
        .hasRootCauseInstanceOf(Error.class);
    t.readsRight(digest);
    assertThat(asked).hasValue(2);
    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-4 an own authorization beside a source of tokens is refused by build")
  void contradiction() {
    CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:1")));
    CasRingBuilder both =
        CasRing.builder(config).headers(authorization("Basic abc")).tokenSource(Mono.just("one"));
    assertThatIllegalArgumentException()
        .isThrownBy(both::build)
        .withMessage("headers: authorization (expected: none where tokenSource is set)");
    both.headers(new Metadata()).build().close();
    both.headers(authorization("Basic abc")).headers(context -> new Metadata()).build().close();
  }

  @Test
  @DisplayName("CAS-4 a token takes the place of an authorization that is made for each call")
  void tokenWins() {
    TestRing t =
        ring(
            1,
            settings ->
                settings
                    .headers(context -> authorization("Basic abc"))
                    .tokenSource(Mono.just("one")));
    t.readsRight(t.put(0, 0));
    assertThat(t.server(0).reads().awaitCall(1).headers().getAll(ShardCalls.AUTHORIZATION))
        .containsExactly("Bearer one");
  }

  @Test
  @DisplayName("CAS-4 an own authorization alone travels")
  void own() {
    TestRing t = ring(1, settings -> settings.headers(authorization("Basic abc")));
    t.readsRight(t.put(0, 0));
    assertThat(t.server(0).reads().awaitCall(1).header("authorization")).isEqualTo("Basic abc");
  }

  @Test
  @DisplayName("CAS-4 the token is fetched once for all calls, and once again for a burst refused")
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
    TestRing t = ring(1, settings -> settings.rpcTimeout(Duration.ZERO).tokenSource(Mono.never()));
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
  @DisplayName("CAS-20a an Error that the source tells of from another thread is told at once")
  void sourceTellsOfAnError() {
    Error dies = new StackOverflowError("too deep");
    TestRing t =
        ring(
            1,
            settings ->
                settings.tokenSource(
                    Mono.create(sink -> new Thread(() -> sink.error(dies)).start())));

    assertThat(failure(t.ring.read(t.put(0, 0))))
        .hasMessageContaining("UNAUTHENTICATED: no token: java.lang.StackOverflowError: too deep")
        .hasRootCause(dies);
  }

  @Test
  @DisplayName("CAS-3 CAS-20a a source that hangs has a call's time and no more, which is told")
  void sourceHangs() {
    TestRing t = ring(1, settings -> hanging(settings, Mono.never()));
    Digest digest = t.put(0, 0);
    for (int i = 0; i < 4; i++) {
      CompletableFuture<@Nullable Throwable> read = end(t.ring.read(digest));
      CompletableFuture<BlobPresence> lookup = t.ring.findMissing(Set.of(digest)).toFuture();
      t.pass(Duration.ofSeconds(2));
      assertThat(read.join()).hasMessageContaining(NO_TOKEN);
      assertThat(lookup.join().unknown().get(digest)).hasMessageContaining(NO_TOKEN);
    }

    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  private static CasRingBuilder hanging(CasRingBuilder settings, Mono<String> source) {
    return settings.retries(0).rpcTimeout(Duration.ofSeconds(2)).tokenSource(source);
  }

  @Test
  @DisplayName("CAS-3 CAS-20a an upload waits for its token as long as a call may, and no longer")
  void uploadWaits() {
    AtomicInteger asked = new AtomicInteger();
    Mono<String> once =
        Mono.defer(() -> asked.incrementAndGet() == 1 ? Mono.just("one") : Mono.never());
    TestRing t = ring(1, settings -> hanging(settings, once));
    assertThat(t.ring.write("x".getBytes(UTF_8)).block(LONG)).isNotNull();
    t.server(0).requireToken("two");
    CompletableFuture<@Nullable Throwable> write = end(t.ring.write("y".getBytes(UTF_8)));
    until("the token is fetched again", () -> asked.get() == 2);

    t.pass(Duration.ofSeconds(3));

    assertThat(write.join()).hasMessageContaining(NO_TOKEN);
    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-3 DL-5 the caller's deadline bounds the wait for a token, and tells of it")
  void deadlineBoundsIt() {
    TestRing t = ring(1, settings -> settings.tokenSource(Mono.never()));
    Digest digest = t.put(0, 0);
    for (Publisher<?> call :
        List.<Publisher<?>>of(t.ring.read(digest), t.ring.findMissing(Set.of(digest)))) {
      Deadline deadline = Deadline.after(Duration.ofMillis(100));
      assertThat(failure(Flux.from(call).transform(Deadlines.of(deadline))))
          .isInstanceOf(DeadlineExceededException.class);
      until("it is charged", () -> deadline.ledger().toString().contains("waiting for a token"));
    }
    assertThat(
            failure(
                t.ring
                    .write("x".getBytes(UTF_8))
                    .transform(Deadlines.within(Duration.ofMillis(100)))))
        .isInstanceOf(DeadlineExceededException.class);
    t.pass(Duration.ofSeconds(30)); // ends the question what the server can, which is nobody's own
  }
}
