package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import io.r2dbc.postgresql.client.SSLMode;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresReplicaSetExtension.class)
class PoolTlsTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  private final ReaderPools pools = new ReaderPools();
  private PostgresServer standby;
  private FaultProxy proxy;
  private String certificate;
  private int logged;

  @BeforeEach
  void server(PostgresReplicaSet postgres) {
    standby = postgres.standby();
    certificate = postgres.certificate().toString();
    proxy = standby.proxy();
    logged = standby.log().size();
  }

  @AfterEach
  void nothingIsLeft() {
    pools.closeWith(standby);
    proxy.close();
  }

  private ReaderPool overTls(java.util.function.UnaryOperator<ReaderPools.Values> change) {
    return pools.open(
        "127.0.0.1",
        proxy.port(),
        change,
        builder -> builder.sslMode(SSLMode.VERIFY_FULL).sslRootCert(certificate));
  }

  private List<String> brokenHandshakes() {
    List<String> log = standby.log();
    return log.subList(logged, log.size()).stream()
        .filter(line -> line.contains("SSL connection") || line.contains("incomplete startup"))
        .toList();
  }

  @Test
  @DisplayName("PG-1 PG-4 a reader is dialled over TLS, its certificate verified")
  void dials() {
    ReaderPool pool = overTls(it -> it.size(2, 4));
    pool.start();
    ReaderPools.idleIs(pool, 2);
    Lease lease = ReaderPools.acquire(pool);
    assertThat(ReaderPools.value(lease, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
        .isEqualTo("true");
    lease.release();
    ReaderPools.idleIs(pool, 2);
    assertThat(brokenHandshakes()).isEmpty();
  }

  @Test
  @DisplayName("PG-4 a burst of acquires that give up breaks no handshake in the server's log")
  void noBrokenHandshake() {
    proxy.delay(Duration.ofMillis(40));
    ReaderPool pool = overTls(it -> it.size(1, 4).acquire(Duration.ofMillis(50)));
    Flux.range(0, 100)
        .flatMap(i -> pool.acquire(LONG).onErrorResume(refused -> Mono.empty()), 100)
        .doOnNext(Lease::release)
        .blockLast(LONG);
    ReaderPools.idleIs(pool, 4);
    assertThat(pools.counts.all()).isEqualTo(java.util.Map.of("dial ok", 4));
    assertThat(brokenHandshakes()).isEmpty();
  }

  @Test
  @DisplayName("PG-4 a TLS handshake that nobody answers has its socket closed at the dial timeout")
  void silentHandshake() {
    proxy.acceptAndSayNothing();
    ReaderPool pool =
        overTls(it -> it.size(1, 1).acquire(Duration.ofMillis(50)).dial(Duration.ofMillis(300)));
    pool.acquire(LONG).onErrorComplete().block(LONG);
    ReaderPools.until(
        "its socket is closed",
        () ->
            pools.counts.dials("timeout") == 1
                && proxy.openClientSockets() == 0
                && pool.allocated() == 0,
        () -> pools.counts.all() + " " + proxy.connections());
  }

  @Test
  @DisplayName("PG-19 a statement is cancelled on the server over TLS")
  void cancels() {
    ReaderPool pool = overTls(it -> it.size(1, 1));
    Lease lease = ReaderPools.acquire(pool);
    ReaderPools.run(lease, "SELECT pg_sleep(30)").onErrorComplete().subscribe();
    ReaderPools.until(
        "it runs",
        () ->
            standby.sessions(pools.application).stream().anyMatch(it -> it.query().contains("30")),
        () -> standby.sessions(pools.application).toString());
    lease.cancelled();
    ReaderPools.until(
        "no session",
        () -> standby.sessions(pools.application).isEmpty(),
        () -> standby.sessions(pools.application).toString());
    assertThat(pools.counts.of(CloseReason.CANCELLED)).isEqualTo(1);
    List<String> log = standby.log();
    assertThat(log.subList(logged, log.size()))
        .anyMatch(line -> line.contains("canceling statement due to user request"));
  }
}
