package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

@DisplayName("CAS-32 what a shard's server says of itself")
class CapabilitiesTest {
  private ScriptedCas server = ScriptedCas.start();
  private CasRing ring = ringOf(settings -> settings);

  private CasRing ringOf(UnaryOperator<CasRingBuilder> settings) {
    CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", server.hostAndPort())));
    return settings.apply(CasRing.builder(config).retries(0)).build();
  }

  /** Another server, with a ring of it. */
  private void server(ScriptedCas.Builder made) {
    close();
    server = made.start();
    ring = ringOf(settings -> settings);
  }

  @AfterEach
  void close() {
    server.awaitOpenCalls(0);
    Patience.until("no claim is open", () -> ring.health().openClaims() == 0);
    ring.close();
    server.close();
  }

  private int asked() {
    return server.capabilities().calls().size();
  }

  private static byte[] blob(int n) {
    return ("blob" + n).getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }

  @Test
  @DisplayName("CAS-32 asked once, however many calls need it at once and later")
  void once() {
    CompletableFuture<Void> gate = new CompletableFuture<>();
    server.capabilities().always(CasScript.correct().after(gate));
    var all = Flux.range(0, 50).flatMap(n -> ring.write(blob(n)), 50).collectList().toFuture();
    server.capabilities().awaitCall(1);
    gate.complete(null);
    assertThat(all.orTimeout(20, java.util.concurrent.TimeUnit.SECONDS).join()).hasSize(50);
    ring.write(blob(100)).block(LONG);
    assertThat(asked()).isEqualTo(1);
  }

  @Test
  @DisplayName("CAS-32 told: functions, batch limit, compressors")
  void told() {
    server(
        ScriptedCas.builder()
            .digestFunctions(DigestFunction.SHA256, DigestFunction.BLAKE3)
            .batchLimit(12345)
            .zstd());
    CasCapabilities told = ring.capabilities("s0").block(LONG);
    assertThat(told).isEqualTo(new CasCapabilities(List.of("SHA256", "BLAKE3"), 12345, true));
    assertThat(new CasCapabilities(List.of("SHA256"), 0, false).knows(DigestFunction.BLAKE3))
        .isFalse();
    assertThat(CasCapabilities.UNTOLD.knows(DigestFunction.SHA256)).isTrue();
    assertThatThrownBy(() -> ring.capabilities("s1"))
        .hasMessage("shard: s1 (expected: one of [s0])");
  }

  @Test
  @DisplayName("CAS-32 a failure is the call's, and is not kept")
  void failureNotKept() {
    server.capabilities().next(CasScript.status(Status.UNAVAILABLE.withDescription("starting")));
    assertThat(failure(ring.write(blob(1)))).hasMessageContaining("starting");
    assertThat(server.writes().calls()).isEmpty();
    ring.write(blob(1)).block(LONG);
    ring.write(blob(2)).block(LONG);
    assertThat(asked()).isEqualTo(2);
  }

  @Test
  @DisplayName("CAS-32 a server that does not know the question has told nothing, which is kept")
  void unimplemented() {
    server(ScriptedCas.builder().noCapabilities());
    assertThat(ring.capabilities("s0").block(LONG)).isEqualTo(CasCapabilities.UNTOLD);
    ring.write(blob(1)).block(LONG);
    assertThat(asked()).isEqualTo(1);
  }

  @Test
  @DisplayName("CAS-32 a server that refuses the question may serve the call")
  void refused() {
    server.capabilities().always(CasScript.status(Status.PERMISSION_DENIED));
    ring.write(blob(1)).block(LONG);
    assertThat(server.has(Digest.of(blob(1)))).isTrue();
  }

  @Test
  @DisplayName("CAS-32 that it refused is kept for the cooldown: calls do not ask each time")
  void refusalKept() {
    server.capabilities().always(CasScript.status(Status.PERMISSION_DENIED));
    for (int i = 0; i < 5; i++) {
      ring.write(blob(i)).block(LONG);
    }
    assertThat(asked()).isEqualTo(1);
    ring.close();
    ring = ringOf(settings -> settings.cooldown(Duration.ofMillis(1)));
    Patience.until(
        "asked again",
        () -> {
          ring.write(blob(1)).block(LONG);
          return asked() >= 3;
        });
  }

  @Test
  @DisplayName("CAS-32 a digest function that the server has not: which shard, and what it has")
  void otherFunction() {
    ring.close();
    ring = ringOf(settings -> settings.digestFunction(DigestFunction.BLAKE3));
    Throwable failure = failure(ring.write(blob(1)));
    assertThat(failure)
        .isInstanceOf(StatusRuntimeException.class)
        .hasMessageContaining("digestFunction: BLAKE3 (expected by s0: one of [SHA256])");
    assertThat(server.writes().calls()).isEmpty();
  }

  @Test
  @DisplayName("CAS-32 BLAKE3 where the server has it, named in the resource")
  void blake3() {
    server(ScriptedCas.builder().digestFunctions(DigestFunction.BLAKE3));
    ring.close();
    ring = ringOf(settings -> settings.digestFunction(DigestFunction.BLAKE3));
    WriteResult written = ring.write(blob(1)).block(LONG);
    assertThat(written).isNotNull();
    assertThat(written.digest()).isEqualTo(Digest.of(blob(1), DigestFunction.BLAKE3));
    assertThat(server.get(written.digest())).isEqualTo(blob(1));
    assertThat(server.writes().awaitCall(1).resourceName()).contains("/blobs/blake3/");
  }

  @Test
  @DisplayName("CAS-32 a caller's deadline bounds its own wait, and not the question of others")
  void deadline() {
    CompletableFuture<Void> gate = new CompletableFuture<>();
    server.capabilities().always(CasScript.correct().after(gate));
    assertThatThrownBy(
            () ->
                ring.write(blob(1)).transform(Deadlines.within(Duration.ofMillis(50))).block(LONG))
        .isInstanceOf(DeadlineExceededException.class);
    var other = ring.write(blob(2)).toFuture();
    gate.complete(null);
    assertThat(other.orTimeout(20, java.util.concurrent.TimeUnit.SECONDS).join()).isNotNull();
    assertThat(asked()).isEqualTo(1);
  }
}
