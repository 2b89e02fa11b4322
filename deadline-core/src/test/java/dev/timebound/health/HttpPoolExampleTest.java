package dev.timebound.health;

import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.netty.DisposableServer;
import reactor.netty.http.client.HttpClient;
import reactor.netty.http.server.HttpServer;
import reactor.netty.resources.ConnectionProvider;
import reactor.util.retry.Retry;

/** The second example of docs/health.md, as it stands there: an HTTP client over some addresses. */
class HttpPoolExampleTest {

  // --- the example

  record Address(String name, HttpClient http) implements Member {
    @Override
    public Mono<ProbeAnswer> probe() {
      // whatever it says, it lives; an error counts as CONNECTION_FAILED
      return http.get().uri("/alive").response().map(response -> ProbeAnswer.ANSWERED);
    }
  }

  static final class HttpPool {
    private final HealthGroup<Address> addresses;

    HttpPool(HealthGroup<Address> addresses) {
      this.addresses = addresses;
    }

    Mono<String> get(String path) {
      return Mono.defer(
          () -> {
            AtomicReference<@Nullable Address> failed = new AtomicReference<>();
            return Mono.defer(() -> attempt(path, failed)).retryWhen(Retry.max(2));
          });
    }

    private Mono<String> attempt(String path, AtomicReference<@Nullable Address> failed) {
      Sinks.One<String> cut = Sinks.one();
      Claim<Address> claim = addresses.pick(a -> a == failed.get(), cut::tryEmitError);
      if (claim == null) {
        return Mono.error(new IllegalStateException("no address"));
      }
      failed.set(claim.member());
      claim.waiting();
      Mono<String> answer =
          claim
              .member()
              .http()
              .get()
              .uri(path)
              .responseSingle(
                  (response, body) -> {
                    claim.progress();
                    return body.asString().defaultIfEmpty("");
                  });
      return Mono.firstWithSignal(answer, cut.asMono())
          .doOnSuccess(body -> claim.succeeded())
          .doOnError(e -> claim.failed(FailureKind.CONNECTION, e))
          .doOnCancel(claim::cancelled);
    }
  }

  // --- its proof

  private final List<DisposableServer> servers = new ArrayList<>();
  private final Set<Integer> silent = ConcurrentHashMap.newKeySet();
  private final ConnectionProvider connections = ConnectionProvider.create("http-pool", 100);

  private DisposableServer server(int n) {
    DisposableServer server =
        HttpServer.create()
            .host("127.0.0.1")
            .port(0)
            .handle(
                (request, response) ->
                    silent.contains(n)
                        ? Mono.never()
                        : response.sendString(Mono.just("server-" + n)).then())
            .bindNow(ofSeconds(20));
    servers.add(server);
    return server;
  }

  @AfterEach
  void stop() {
    connections.disposeLater().block(ofSeconds(20));
    servers.forEach(s -> s.disposeNow(ofSeconds(20)));
  }

  @Test
  @DisplayName("HE-14 an HTTP client over three addresses: one falls silent, no request is lost")
  void silentAddress() {
    try (HealthEngine engine = HealthEngine.builder().build()) {
      HealthGroup<Address> addresses =
          engine.group(
              "http",
              HealthPolicy.silence(ofMillis(200))
                  .confirmedByProbe(ofMillis(200))
                  .probeInterval(ofMillis(200), ofSeconds(1))
                  .penalty(10, ofSeconds(1))
                  .maxQuarantined(0.5)
                  .build());
      for (int n = 0; n < 3; n++) {
        HttpClient http = HttpClient.create(connections).host("127.0.0.1").port(server(n).port());
        addresses.add(new Address("server-" + n, http));
      }
      HttpPool pool = new HttpPool(addresses);

      assertThat(answers(pool, 60)).containsExactlyInAnyOrder("server-0", "server-1", "server-2");

      silent.add(1);
      Flux.interval(ofMillis(5))
          .takeUntil(i -> status(addresses, 1) == MemberStatus.QUARANTINED)
          .onBackpressureDrop()
          .flatMap(i -> pool.get("/"), 64)
          .doOnNext(body -> assertThat(body).isNotEqualTo("server-1"))
          .then() // every one of them is answered
          .block(Duration.ofSeconds(30));
      assertThat(answers(pool, 60)).containsExactlyInAnyOrder("server-0", "server-2");

      silent.clear();
      until(() -> status(addresses, 1) == MemberStatus.HEALTHY);
      until(() -> answers(pool, 30).contains("server-1"));
      until(() -> addresses.openClaims() == 0);
    }
  }

  private static Set<String> answers(HttpPool pool, int requests) {
    return Flux.range(0, requests)
        .flatMap(i -> pool.get("/"), 12)
        .collect(HashSet<String>::new, HashSet::add)
        .blockOptional(ofSeconds(30))
        .orElseThrow();
  }

  private static @Nullable MemberStatus status(HealthGroup<Address> addresses, int n) {
    MemberHealth health = addresses.health("server-" + n);
    return health == null ? null : health.status();
  }

  private static void until(BooleanSupplier condition) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("gave up waiting").isLessThan(end);
      LockSupport.parkNanos(5_000_000);
    }
  }
}
