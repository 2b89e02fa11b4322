package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.HOUR;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.bigtable.TestCredentials.Mode;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.ProxyConnection;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import io.grpc.Status;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@DisplayName("BT-14 a probe without credentials says nothing")
class ProbeCredentialsTest {
  private static final Duration SUSPECT_AFTER = Duration.ofMillis(300);
  private static final Duration PROBE_LIMIT = Duration.ofMillis(300);
  private static final Duration SEVERAL_PROBES = Duration.ofMillis(1500);

  private final TestCredentials credentials = new TestCredentials();
  private final ScriptedBigtable server = ScriptedBigtable.start();
  private final FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());
  private final Scripted reads =
      new Scripted(
          server,
          proxy.port(),
          settings ->
              settings
                  .gapTimeout(HOUR)
                  .headersTimeout(HOUR)
                  .credentials(credentials)
                  .pool(
                      pool ->
                          pool.suspectAfter(SUSPECT_AFTER)
                              .probeTimeout(PROBE_LIMIT)
                              .probeInterval(Duration.ofMillis(200), Duration.ofMillis(400))
                              .credentialsTimeout(Duration.ofMillis(400))));

  @AfterEach
  void close() {
    credentials.release();
    proxy.heal();
    reads.close();
    proxy.close();
  }

  private void await(MemberStatus status) {
    eventually(() -> assertThat(statuses()).contains(status));
  }

  private Iterable<MemberStatus> statuses() {
    return reads.client.pool().channels().stream().map(MemberHealth::status).toList();
  }

  private void awaitAsked(int times) {
    int asked = credentials.asked.get();
    eventually(() -> assertThat(credentials.asked.get()).isGreaterThanOrEqualTo(asked + times));
  }

  private static Script flowing() {
    Script script = Script.start();
    for (int i = 0; i < 3000; i++) {
      script = script.rows(Scripted.key(i)).pause(Duration.ofMillis(20));
    }
    return script.ok();
  }

  @ParameterizedTest
  @EnumSource(
      value = Mode.class,
      names = {"FAILS", "HANGS"})
  @DisplayName(
      "BT-14 a token that fails or hangs neither quarantines nor restores; then both happen")
  void neither(Mode mode) {
    server.readRows().next(flowing());
    Reader flow = reads.read();
    flow.awaitRows(3);
    ProxyConnection idle =
        proxy.connections().stream()
            .min((a, b) -> Long.compare(a.bytesToClient(), b.bytesToClient()))
            .orElseThrow();
    server
        .readRows()
        .next(Script.start().rows("a").silence())
        .always(Script.start().rows("b").ok());
    Reader stalled = reads.read();
    stalled.awaitRows(1);

    credentials.mode = mode;
    idle.freeze();
    await(MemberStatus.SUSPECT);
    Scripted.letPass(SEVERAL_PROBES);
    assertThat(statuses()).contains(MemberStatus.SUSPECT).doesNotContain(MemberStatus.QUARANTINED);
    assertThat(stalled.isOver()).isFalse();

    credentials.release();
    await(MemberStatus.QUARANTINED);
    assertThat(stalled.awaitComplete()).containsExactly("a", "b");

    credentials.mode = Mode.FAILS;
    // The probe that is under way still has its token, and the thaw would give it its answer.
    awaitAsked(2);
    idle.thaw();
    awaitAsked(2);
    assertThat(statuses()).contains(MemberStatus.QUARANTINED);

    credentials.release();
    eventually(() -> assertThat(statuses()).containsOnly(MemberStatus.HEALTHY));
    assertThat(flow.isOver()).isFalse();
    flow.cancel();
  }

  @Test
  @DisplayName("BT-14 BT-34 a read whose token fails is tried again, and blames no channel")
  void readsWithoutToken() {
    server.readRows().always(Script.start().rows("a").ok());
    credentials.mode = Mode.FAILS;
    int asked = credentials.asked.get();
    Status status = Status.fromThrowable(reads.read().awaitError());
    assertThat(status.getCode())
        .as("%s %s", status, status.getCause())
        .isEqualTo(Status.Code.UNAVAILABLE);
    assertThat(credentials.asked.get() - asked).isEqualTo(3);
    credentials.mode = Mode.REFUSES;
    int before = credentials.asked.get();
    assertThat(Status.fromThrowable(reads.read().awaitError()).getCode())
        .isEqualTo(Status.Code.UNAUTHENTICATED);
    assertThat(credentials.asked.get() - before).isEqualTo(1);
    assertThat(reads.calls()).isEmpty();
    assertThat(reads.penalties()).containsExactly(0, 0);
    credentials.mode = Mode.GIVES;
    assertThat(reads.read().awaitComplete()).containsExactly("a");
  }

  @Test
  @DisplayName(
      "credentials go with reads, probes and pings as the headers they are, binary ones too")
  void headers() {
    server.readRows().always(Script.start().rows("a").ok());
    reads.read().awaitComplete();
    reads.client.pingAndWarm().block(Scripted.BOUND);
    assertThat(server.calls()).hasSizeGreaterThanOrEqualTo(4);
    assertThat(server.calls())
        .allSatisfy(
            call -> {
              assertThat(call.header("authorization")).isEqualTo("Bearer t");
              assertThat(call.header("google-cloud-resource-prefix"))
                  .startsWith("projects/timebound/instances/test");
              assertThat(call.header("x-goog-request-params"))
                  .contains("projects%2Ftimebound%2Finstances%2Ftest");
              assertThat(call.header("bigtable-features")).isNotBlank();
              assertThat(
                      call.metadata()
                          .get(
                              io.grpc.Metadata.Key.of(
                                  "x-extra-bin", io.grpc.Metadata.BINARY_BYTE_MARSHALLER)))
                  .containsExactly(1, 2, 3);
            });
  }
}
