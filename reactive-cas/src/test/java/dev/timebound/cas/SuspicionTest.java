package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.code;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** When a shard is not the first to be asked, and when it is again. */
class SuspicionTest {
  private static final CasScript DEAD = CasScript.status(Status.UNAVAILABLE);

  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(UnaryOperator<CasRingBuilder> settings) {
    return rings.of(3, settings);
  }

  private TestRing ring() {
    return ring(settings -> settings.retries(0));
  }

  @Test
  @DisplayName("CAS-20 after three failures a shard is not the first to be asked")
  void threeFailures() {
    TestRing t = ring();
    t.server(0).reads().always(DEAD);
    for (int i = 0; i < 3; i++) {
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
      t.readsRight(t.put(0, 1));
    }
    assertThat(t.status(0)).isEqualTo(MemberStatus.QUARANTINED);
    t.pass(Duration.ofMillis(4_999));

    t.readsRight(t.put(0, 1));

    assertThat(t.reads(0)).isEqualTo(3);
    assertThat(t.reads(1)).isEqualTo(4);
  }

  @Test
  @DisplayName("CAS-20 a success between them resets the count, a NOT_FOUND is one")
  void reset() {
    TestRing t = ring();
    for (int i = 0; i < 4; i++) {
      t.server(0).reads().next(DEAD, DEAD);
      t.readsRight(t.put(0, 1));
      t.readsRight(t.put(0, 1));
      assertThat(failure(t.ring.read(t.put(0)))).isInstanceOf(BlobNotFoundException.class);
    }

    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-20 CAS-27 after the cooldown one call tries it, the others go on in ring order")
  void trial() {
    TestRing t = ring();
    t.server(0).reads().always(DEAD);
    t.makeSuspect(0);
    CompletableFuture<Void> gate = new CompletableFuture<>();
    t.server(0).reads().always(CasScript.correct().after(gate));
    int before = t.reads(0);
    t.pass(Duration.ofSeconds(5));
    Digest digest = t.put(0, 0, 1);

    CompletableFuture<@Nullable Throwable> trial = end(t.ring.read(digest));
    t.server(0).reads().awaitCall(before + 1);
    for (int i = 0; i < 5; i++) {
      t.readsRight(digest);
    }
    assertThat(t.reads(0)).isEqualTo(before + 1);
    gate.complete(null);

    assertThat(trial.join()).isNull();
    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    int others = t.reads(1);
    t.readsRight(digest);
    assertThat(t.reads(1)).isEqualTo(others);
  }

  @Test
  @DisplayName("CAS-20 a trial that fails starts the cooldown again")
  void trialFails() {
    TestRing t = ring();
    t.server(0).reads().always(DEAD);
    t.makeSuspect(0);
    t.pass(Duration.ofSeconds(5));
    int before = t.reads(0);
    Digest digest = t.put(0, 1);
    t.readsRight(digest);
    assertThat(t.reads(0)).isEqualTo(before + 1);
    t.pass(Duration.ofMillis(4_999));
    t.readsRight(digest);
    assertThat(t.reads(0)).isEqualTo(before + 1);
    t.pass(Duration.ofMillis(1));
    t.readsRight(digest);
    assertThat(t.reads(0)).isEqualTo(before + 2);
  }

  @Test
  @DisplayName("CAS-20 a trial of a long blob brings the shard back with its first bytes")
  void trialOfALongBlob() {
    TestRing t = ring();
    t.server(0).reads().always(DEAD);
    t.makeSuspect(0);
    t.pass(Duration.ofSeconds(5));
    t.server(0).reads().always(CasScript.correct().chunkSize(500).stopAfter(1, CasEnd.silence()));
    byte[] content = t.contentOf(0, 1000);
    t.put(content, 0);

    CompletableFuture<@Nullable Throwable> trial = end(t.ring.read(Digest.of(content)));

    until("it is back", () -> t.status(0) == MemberStatus.HEALTHY);
    t.passUntilDone(trial, Duration.ofSeconds(10));
    assertThat(code(trial.join())).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
  }

  @Test
  @DisplayName("CAS-2a CAS-27 a revived process serves its own keys with the first trial")
  void revived() {
    TestRing t = ring();
    Digest digest = t.put(0, 0, 1);
    t.kill(0);
    t.makeSuspect(0);
    int before = t.reads(0);
    t.server(0).restart();
    // no background attempt may be due: only the trial connects
    t.pass(Duration.ofSeconds(5));

    t.readsRight(digest);

    assertThat(t.reads(0)).isEqualTo(before + 1);
    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-24 with every shard suspect the home is tried directly")
  void allSuspect() {
    TestRing t = ring();
    t.servers.forEach(server -> server.reads().always(DEAD));
    for (int i = 0; i < 3; i++) {
      t.makeSuspect(i);
    }
    t.servers.forEach(server -> server.reads().heal());
    Digest digest = t.put(1, 1);
    int before = t.reads(1);
    int others = t.reads(0) + t.reads(2);

    t.readsRight(digest);

    assertThat(t.reads(1)).isEqualTo(before + 1);
    assertThat(t.reads(0) + t.reads(2)).isEqualTo(others);
  }

  @Test
  @DisplayName("CAS-20 a shard under load or with other errors is not suspect")
  void answers() {
    TestRing t = ring();
    t.server(0).reads().always(CasScript.status(Status.RESOURCE_EXHAUSTED));
    for (int i = 0; i < 4; i++) {
      assertThat(code(failure(t.ring.read(t.put(0))))).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
    }
    t.server(0).reads().always(CasScript.status(Status.INTERNAL));
    for (int i = 0; i < 4; i++) {
      assertThat(code(failure(t.ring.read(t.put(0))))).isEqualTo(Status.Code.INTERNAL);
    }

    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-4 the last candidate is tried again, the others are not")
  void lastCandidate() {
    TestRing t = ring(settings -> settings.retries(3));
    Digest digest = t.put(0, 2);
    t.server(0).reads().always(DEAD);
    t.server(1).reads().always(DEAD);
    t.server(2).reads().next(DEAD, DEAD);

    CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
    t.passPauses(end);

    assertThat(end.join()).isNull();
    assertThat(List.of(t.reads(0), t.reads(1), t.reads(2))).containsExactly(1, 1, 3);
  }
}
