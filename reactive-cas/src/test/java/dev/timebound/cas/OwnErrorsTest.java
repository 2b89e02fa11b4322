package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.test.FaultProxy;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.test.scheduler.VirtualTimeScheduler;

/** Callers that wait for one and the same thing: what each adds to its error is its own. */
@DisplayName("CAS-23 who waits with others fails with an exception of its own")
class OwnErrorsTest {
  private static final int CALLS = 20;

  private static List<CompletableFuture<@Nullable Throwable>> many(Supplier<Publisher<?>> call) {
    List<CompletableFuture<@Nullable Throwable>> ends = new ArrayList<>();
    for (int i = 0; i < CALLS; i++) {
      ends.add(end(call.get()));
    }
    return ends;
  }

  private static void eachItsOwn(List<CompletableFuture<@Nullable Throwable>> ends, String words) {
    Set<Throwable> all = Collections.newSetFromMap(new IdentityHashMap<>());
    for (CompletableFuture<@Nullable Throwable> end : ends) {
      Throwable failure = end.join();
      assertThat(failure).hasMessageContaining(words);
      if (failure != null) {
        all.add(failure);
        assertThat(failure.getSuppressed()).hasSizeLessThanOrEqualTo(1);
      }
    }
    assertThat(all).hasSize(CALLS);
  }

  @Test
  @DisplayName("CAS-23 CAS-1 for an attempt to connect")
  void attempt() {
    VirtualTimeScheduler time = VirtualTimeScheduler.create();
    try (ScriptedCas server = ScriptedCas.start();
        FaultProxy a = FaultProxy.to("127.0.0.1", server.port());
        FaultProxy b = FaultProxy.to("127.0.0.1", server.port())) {
      a.acceptAndSayNothing();
      b.acceptAndSayNothing();
      CasConfig config =
          new CasConfig(
              List.of(
                  CasConfig.Shard.of("s0", a.hostAndPort()),
                  CasConfig.Shard.of("s1", b.hostAndPort())));
      try (CasRing ring = CasRing.builder(config).scheduler(time).retries(0).build()) {
        var ends = many(() -> ring.read(Digest.of(new byte[] {1})));
        until("it is tried", () -> a.accepted() == 1 && b.accepted() == 1);
        time.advanceTimeBy(Duration.ofSeconds(5));

        eachItsOwn(ends, "not connected within PT5S");
      }
    } finally {
      time.dispose();
    }
  }

  @Test
  @DisplayName("CAS-23 CAS-32 for what a server can")
  void capabilities() {
    try (TestRing t = TestRing.of(1, settings -> settings.retries(0))) {
      CompletableFuture<Void> gate = new CompletableFuture<>();
      t.server(0).capabilities().always(CasScript.status(Status.UNAVAILABLE).after(gate));
      var ends = many(() -> t.ring.write(new byte[] {1}));
      t.server(0).capabilities().awaitCall(1);
      gate.complete(null);

      eachItsOwn(ends, "UNAVAILABLE: s0");
      assertThat(t.server(0).capabilities().calls()).hasSize(1);
    }
  }

  @Test
  @DisplayName("CAS-23 for a token")
  void token() {
    Sinks.One<String> source = Sinks.one();
    try (TestRing t =
        TestRing.of(1, settings -> settings.retries(0).tokenSource(source.asMono()))) {
      Digest digest = t.put(0, 0);
      var ends = many(() -> t.ring.read(digest));
      source.tryEmitError(new IllegalStateException("none today")).orThrow();

      eachItsOwn(ends, "no token: none today");
    }
  }

  @Test
  @DisplayName("CAS-23 for a token, as the ring is closed")
  void closed() {
    TestRing t = TestRing.of(1, settings -> settings.retries(0).tokenSource(Mono.never()));
    try (t) {
      Digest digest = t.put(0, 0);
      var ends = many(() -> t.ring.read(digest));
      t.ring.close();

      eachItsOwn(ends, "the ring is closed");
    }
  }
}
