package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import io.r2dbc.postgresql.client.SSLMode;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("PG-1 PG-5 where a reader is, and what it asks of a dial")
class PoolReachTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  @Test
  @DisplayName("PG-5 PG-11 a server that takes TLS only: refused without, served with it")
  void tlsOnly() throws IOException {
    try (PostgresReplicaSet servers = PostgresReplicaSet.builder().tls().standbys(1).start()) {
      PostgresServer standby = servers.standby();
      Path hba = Path.of(standby.value("SHOW hba_file"));
      Files.writeString(hba, "local all all trust\nhostssl all all all trust\n");
      standby.value("SELECT pg_reload_conf()");
      try (ReaderPools pools = new ReaderPools()) {
        ReaderPool plain =
            pools.open(
                "127.0.0.1",
                standby.port(),
                it -> it.size(1, 1),
                builder -> builder.sslMode(SSLMode.DISABLE));
        // once the server has read its file again
        Eventually.eventually(
            () ->
                assertThatThrownBy(() -> ReaderPools.acquire(plain).drop(CloseReason.ERROR))
                    .isInstanceOfSatisfying(
                        RefusedException.class,
                        e -> assertThat(e.reason()).isEqualTo(RouteReason.READER_DIAL_FAILED))
                    .rootCause()
                    .hasMessageContaining("no encryption"));
        for (SSLMode mode : new SSLMode[] {SSLMode.PREFER, SSLMode.REQUIRE}) {
          ReaderPool pool =
              pools.open(
                  "127.0.0.1",
                  standby.port(),
                  it -> it.size(1, 1),
                  builder -> builder.sslMode(mode));
          Lease lease = ReaderPools.acquire(pool);
          assertThat(
                  ReaderPools.value(
                      lease, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
              .isEqualTo("true");
          lease.release();
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"::1", "[::1]"})
  @ExtendWith(PostgresReplicaSetExtension.class)
  @DisplayName("PG-1 an IPv6 address, as it is and as a URL writes it")
  void ipv6(String host, PostgresReplicaSet servers) throws SocketException {
    assumeThat(NetworkInterface.networkInterfaces().flatMap(NetworkInterface::inetAddresses))
        .as("this machine's addresses")
        .anyMatch(address -> address instanceof Inet6Address && address.isLoopbackAddress());
    try (StartupGate gate = StartupGate.before(servers.standby().port(), "::1");
        RoutedDatabase db =
            RoutedDatabase.builder()
                .writer(ConnectionFactories.get(servers.primary().r2dbcUrl()))
                .reader(
                    "v6",
                    host.startsWith("[")
                        ? ConnectionFactoryOptions.parse(
                            "r2dbc:postgresql://postgres@" + host + ":" + gate.port() + "/postgres")
                        : ConnectionFactoryOptions.parse(servers.standby().r2dbcUrl())
                            .mutate()
                            .option(ConnectionFactoryOptions.HOST, host)
                            .option(ConnectionFactoryOptions.PORT, gate.port())
                            .build())
                .acquireTimeout(LONG)
                .build()) {
      assertThat(db.read(Routed.rows("SELECT pg_is_in_recovery()")).blockLast(LONG))
          .isEqualTo("true");
    }
  }
}
