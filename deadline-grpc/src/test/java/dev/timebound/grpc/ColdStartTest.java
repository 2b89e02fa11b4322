package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.WirePool.Read;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedCall;
import io.grpc.ConnectivityState;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * Cold start: a fresh pool whose first calls pay for every connection, its handshake and the
 * server's own first steps.
 */
class ColdStartTest {
  private static final int CHANNELS = 5;

  private static WirePool pool(boolean warming) {
    ScriptedBigtable server = ScriptedBigtable.start();
    server.readRows().always(Script.start().rows("row").ok());
    return WirePool.direct(
        server,
        ConnectionLoops.create("timebound-test-io", 2),
        channel -> channel,
        settings -> settings.fixedChannels(CHANNELS).warming(warming));
  }

  /** As many at once as there are channels: each has one. */
  private static void readOnEach(WirePool wire) {
    List<Read> reads = new ArrayList<>();
    for (int i = 0; i < CHANNELS; i++) {
      reads.add(wire.read(Set.of(), 0, row -> {}));
    }
    assertThat(wire.pool.channels()).allMatch(channel -> channel.open() == 1);
    reads.forEach(read -> read.request(Long.MAX_VALUE));
    WirePool.await(reads, "the reads");
    assertThat(reads).allMatch(read -> read.completed);
  }

  @Test
  @DisplayName(
      "BT-2 cold start: once it is warm every connection stands and has answered, and the first calls make none")
  void warmed() {
    try (WirePool wire = pool(true)) {
      assertThat(wire.server.openConnections()).isEqualTo(CHANNELS);
      for (PooledChannel channel : wire.members()) {
        assertThat(channel.state(false)).isEqualTo(ConnectivityState.READY);
      }
      readOnEach(wire);
      assertThat(wire.server.openConnections()).isEqualTo(CHANNELS);
      Set<Integer> seen = new HashSet<>();
      for (ScriptedCall call : wire.server.calls()) {
        boolean first = seen.add(call.connection());
        assertThat(call.method()).isEqualTo(first ? "PingAndWarm" : "ReadRows");
      }
      assertThat(seen).hasSize(CHANNELS);
    }
  }

  @Test
  @DisplayName("BT-2 cold start: without warming the first calls connect, and none fails")
  void cold() {
    try (WirePool wire = pool(false)) {
      assertThat(wire.server.openConnections()).isZero();
      readOnEach(wire);
      assertThat(wire.server.openConnections()).isEqualTo(CHANNELS);
      assertThat(wire.server.calls()).allMatch(call -> call.method().equals("ReadRows"));
    }
  }

  @Test
  @DisplayName("BT-2 cold start: a channel that a resize adds takes calls once it has answered")
  void added() {
    try (PoolFixture fixture = new PoolFixture(b -> b.channels(4, 4, 200).warming(true))) {
      fixture.pass(Duration.ofSeconds(30));
      Sinks.One<String> answer = Sinks.one();
      fixture.probes.answer = answer.asMono();
      List<PoolFixture.TestCall> calls = new ArrayList<>();
      for (int i = 0; i < 110; i++) {
        calls.add(fixture.call());
      }
      fixture.pass(Duration.ofSeconds(31));
      assertThat(fixture.fakes).as("made").hasSizeGreaterThan(4);
      assertThat(fixture.pool.channels()).hasSize(4);
      assertThat(fixture.call().channel()).isLessThanOrEqualTo(4);
      answer.tryEmitValue("pong");
      assertThat(fixture.pool.channels()).hasSameSizeAs(fixture.fakes);
      PoolFixture.TestCall first = fixture.call();
      assertThat(first.channel()).as("the least loaded").isGreaterThan(4);
      calls.forEach(call -> call.transport().answer(Status.OK));
      fixture.probes.answer = Mono.just("pong");
    }
  }
}
