package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.HOUR;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.HealthEvent;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.Gate;
import dev.timebound.test.ProxyConnection;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** One of two connections stalls; every limit but the pool's own is an hour. */
@DisplayName("BT-22 BT-15 a stalled connection: its reads go on elsewhere")
class ReadStallTest {
  private static final int ROWS = 12;
  private final ScriptedBigtable server = ScriptedBigtable.start();
  private final FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());
  private final List<HealthEvent> events = new CopyOnWriteArrayList<>();
  private final AtomicLong quarantinedAt = new AtomicLong();
  private Scripted reads = on(settings -> settings);

  private Scripted on(UnaryOperator<BigtableClientBuilder> more) {
    return new Scripted(
        server,
        proxy.port(),
        settings -> more.apply(settings.gapTimeout(HOUR).headersTimeout(HOUR)));
  }

  @BeforeEach
  void watch() {
    reads
        .client
        .pool()
        .health()
        .events()
        .subscribe(
            event -> {
              if (event.to() == MemberStatus.QUARANTINED) {
                quarantinedAt.set(System.nanoTime());
              }
              events.add(event);
            });
  }

  @AfterEach
  void close() {
    proxy.heal();
    reads.close();
    proxy.close();
  }

  /** Rows for minutes, so that its channel receives all the time. */
  private static Script flowing() {
    Script script = Script.start();
    for (int i = 0; i < 6000; i++) {
      script = i % 100 == 0 ? script.rows(Scripted.key(i)) : script;
      script = script.pause(Duration.ofMillis(20));
      script = i % 100 == 0 ? script : script.rows(Scripted.key(i));
    }
    return script.ok();
  }

  /** Starts a scan that flows; the other connection is idle. */
  private Reader flow() {
    server.readRows().next(FLOWING);
    Reader flow = reads.read();
    flow.awaitRows(3);
    return flow;
  }

  private static final Script FLOWING = flowing();

  /** The proxy's connection that the flowing scan is not on. */
  private ProxyConnection other() {
    return proxy.connections().stream()
        .min((a, b) -> Long.compare(a.bytesToClient(), b.bytesToClient()))
        .orElseThrow();
  }

  private void await(MemberStatus status) {
    eventually(
        () ->
            assertThat(reads.client.pool().channels())
                .extracting(MemberHealth::status)
                .contains(status));
  }

  @Test
  @DisplayName(
      "BT-22 stalled before its headers, alone on its connection: over soon after the quarantine")
  void beforeHeaders() {
    Reader flow = flow();
    server.readRows().always(Scripted.rows(Script.start(), 0, ROWS, 5).ok());
    ProxyConnection stalled = other();
    stalled.freeze();
    eventually(() -> assertThat(stalled.state()).isEqualTo(ProxyConnection.State.FROZEN));
    // The least loaded one: the frozen. Nothing of the request reaches the server.
    Reader reader = reads.read();
    assertThat(reader.awaitComplete()).containsExactly(Scripted.keys(0, ROWS));
    long took = System.nanoTime() - quarantinedAt.get();
    assertThat(quarantinedAt.get()).isPositive();
    // Within 2 s where nothing else keeps the machine; every other limit is an hour.
    assertThat(Duration.ofNanos(took)).isLessThan(Duration.ofSeconds(10));
    assertThat(server.readRows().calls()).hasSize(2);
    assertThat(reads.client.pool().quarantinedCalls()).isEqualTo(1);
    assertThat(flow.isOver()).isFalse();
    // The quarantine itself penalises nobody. (BT-15)
    assertThat(reads.penalties()).containsExactly(0, 0);
    // And the channel returns. (BT-17)
    stalled.thaw();
    eventually(
        () ->
            assertThat(reads.client.pool().channels())
                .allMatch(channel -> channel.status() == MemberStatus.HEALTHY));
    flow.cancel();
  }

  @Test
  @DisplayName("BT-15 a reader that waits on a body is woken too, and goes on after its last row")
  void waitingOnABody() {
    Reader flow = flow();
    ProxyConnection stalled = other();
    Gate gate = new Gate();
    server
        .readRows()
        .next(Scripted.rows(Script.start(), 0, 5, 2).hold(gate).rows(Scripted.key(5)).ok())
        .always(Scripted.rows(Script.start(), 5, ROWS, 3).ok());
    Reader reader = reads.read();
    reader.awaitRows(5);
    gate.awaitHeld(1);
    stalled.freeze();
    // What the server goes on to say is lost in the stall.
    gate.open();
    assertThat(reader.awaitComplete()).containsExactly(Scripted.keys(0, ROWS));
    assertThat(quarantinedAt.get()).isPositive();
    assertThat(Scripted.from(server.readRows().calls().get(2))).isEqualTo(5);
    flow.cancel();
  }

  @Test
  @DisplayName("BT-11 unread and busy readers on a stalled connection make it no suspect")
  void nobodyWaits() {
    Reader flow = flow();
    ProxyConnection stalled = other();
    server.readRows().always(Scripted.rows(Script.start(), 0, ROWS, 4).ok());
    Reader busy = Reader.of(reads.all(), 2);
    busy.awaitRows(2);
    stalled.freeze();
    Scripted.letPass(Duration.ofMillis(2500));
    assertThat(events).isEmpty();
    proxy.thaw();
    busy.request(Long.MAX_VALUE);
    assertThat(busy.awaitComplete()).containsExactly(Scripted.keys(0, ROWS));
    flow.cancel();
  }

  @Test
  @DisplayName("BT-12 with nothing coming in anywhere there is no suspect, and everything goes on")
  void wholePool() {
    server.readRows().always(Scripted.rows(Script.start(), 0, ROWS, 4).ok());
    proxy.freezeEstablished();
    Reader one = reads.read();
    Reader two = reads.read();
    Scripted.letPass(Duration.ofMillis(2500));
    assertThat(events).noneMatch(event -> event.to() == MemberStatus.QUARANTINED);
    proxy.thaw();
    assertThat(one.awaitComplete()).containsExactly(Scripted.keys(0, ROWS));
    assertThat(two.awaitComplete()).containsExactly(Scripted.keys(0, ROWS));
    assertThat(server.readRows().calls()).hasSize(2);
  }

  @Test
  @DisplayName("BT-10 one waiting reader is enough, and the status is readable while it is out")
  void statusIsReadable() {
    Reader flow = flow();
    server.readRows().always(Script.start().rows("a").ok());
    ProxyConnection stalled = other();
    stalled.freeze();
    Reader reader = reads.read();
    await(MemberStatus.QUARANTINED);
    assertThat(reader.awaitComplete()).containsExactly("a");
    assertThat(reads.client.pool().channels()).extracting(MemberHealth::quarantines).contains(1);
    flow.cancel();
  }
}
