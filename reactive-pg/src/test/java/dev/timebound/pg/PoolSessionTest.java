package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.spi.ILoggingEvent;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(PostgresReplicaSetExtension.class)
class PoolSessionTest {
  private static final Map<String, String> EXPECTED = new LinkedHashMap<>();

  static {
    EXPECTED.put("default_transaction_isolation", "read committed");
    EXPECTED.put("transaction_isolation", "read committed");
    EXPECTED.put("default_transaction_read_only", "on");
    EXPECTED.put("statement_timeout", "30s");
    EXPECTED.put("idle_in_transaction_session_timeout", "10s");
    EXPECTED.put("client_connection_check_interval", "500ms");
  }

  private final ReaderPools pools = new ReaderPools();
  private PostgresServer standby;

  @BeforeEach
  void server(PostgresReplicaSet postgres) {
    standby = postgres.standby();
    // the other way of everything, which overrides what the server's own file says
    postgres
        .primary()
        .execute(
            "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'stubborn') THEN"
                + " CREATE ROLE stubborn LOGIN SUPERUSER; END IF; END $$");
    for (String setting :
        List.of(
            "default_transaction_isolation = 'repeatable read'",
            "default_transaction_read_only = off",
            "statement_timeout = 0",
            "idle_in_transaction_session_timeout = 0",
            "client_connection_check_interval = 0")) {
      postgres.primary().execute("ALTER ROLE stubborn SET " + setting);
    }
    postgres.awaitReplay();
  }

  @AfterEach
  void nothingIsLeft() {
    pools.closeWith(standby);
  }

  private static Map<String, String> shown(Lease lease) {
    Map<String, String> shown = new LinkedHashMap<>();
    EXPECTED
        .keySet()
        .forEach(name -> shown.put(name, "" + ReaderPools.value(lease, "SHOW " + name)));
    return shown;
  }

  private ReaderPool pool(int port) {
    return pools.open(
        standby.host(), port, it -> it.size(1, 2), builder -> builder.username("stubborn"));
  }

  @Test
  @DisplayName("PG-18 the startup packet sets the session, over the role's defaults")
  void startupPacket() {
    ReaderPool pool = pool(standby.port());
    Lease lease = ReaderPools.acquire(pool);
    assertThat(shown(lease)).isEqualTo(EXPECTED);
    lease.release();
    ReaderPools.idleIs(pool, 1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "08P01|unsupported startup parameter: default_transaction_isolation",
        "0A000|command-line options are not supported"
      })
  @DisplayName("PG-18 a pooler that refuses startup options: told once, and set after connecting")
  void pooler(String refusal) {
    try (StartupGate gate = StartupGate.before(standby.port());
        Logged log = Logged.of(ReaderPool.class)) {
      gate.refuse(
          packet -> packet.containsKey("default_transaction_isolation"),
          refusal.substring(0, 5),
          refusal.substring(6));
      ReaderPool pool = pool(gate.port());
      Lease one = ReaderPools.acquire(pool);
      assertThat(shown(one)).isEqualTo(EXPECTED);
      int dialled = gate.packets().size();
      assertThat(dialled).isEqualTo(2);
      Lease two = ReaderPools.acquire(pool);
      assertThat(shown(two)).isEqualTo(EXPECTED);
      // remembered: straight to what works
      assertThat(gate.packets()).hasSize(dialled + 1);
      one.release();
      two.release();
      ReaderPools.idleIs(pool, 2);
      assertThat(pools.counts.all()).isEqualTo(Map.of("dial ok", 2));
      assertThat(log.warnings())
          .singleElement()
          .extracting(ILoggingEvent::getFormattedMessage)
          .asString()
          .contains("reader reader", refusal.substring(6), "set after connecting");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "42704, unrecognized configuration parameter \"client_connection_check_interval\"",
    "22023, client_connection_check_interval must be set to 0 on this platform"
  })
  @DisplayName("PG-18 a server that lacks one setting: named in the log, the others as before")
  void lacksOne(String state, String message) {
    try (StartupGate gate = StartupGate.before(standby.port());
        Logged log = Logged.of(ReaderPool.class)) {
      gate.refuse(packet -> packet.containsKey("client_connection_check_interval"), state, message);
      ReaderPool pool = pool(gate.port());
      Lease lease = ReaderPools.acquire(pool);
      Map<String, String> expected = new LinkedHashMap<>(EXPECTED);
      expected.put("client_connection_check_interval", "0");
      assertThat(shown(lease)).isEqualTo(expected);
      lease.release();
      ReaderPools.idleIs(pool, 1);
      assertThat(gate.packets()).hasSize(2);
      assertThat(gate.packets().get(1)).containsKey("default_transaction_isolation");
      assertThat(log.warnings())
          .singleElement()
          .extracting(ILoggingEvent::getFormattedMessage)
          .asString()
          .contains("client_connection_check_interval", "left out");
    }
  }

  @Test
  @DisplayName("PG-18 what has nothing to do with settings is no reason to dial again")
  void otherRefusals() {
    try (StartupGate gate = StartupGate.before(standby.port())) {
      gate.refuse(packet -> true, "08P01", "no more connections allowed");
      ReaderPool pool = pool(gate.port());
      RouteReason reason =
          pool.acquire(java.time.Duration.ofSeconds(20))
              .map(lease -> RouteReason.PROVED)
              .onErrorResume(
                  RefusedException.class, e -> reactor.core.publisher.Mono.just(e.reason()))
              .block();
      assertThat(reason).isEqualTo(RouteReason.READER_DIAL_FAILED);
      assertThat(gate.packets()).hasSize(1);
    }
  }
}
