package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import io.grpc.Status;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.Disposable;
import reactor.test.scheduler.VirtualTimeScheduler;

/** A connection on which calls wait in vain, where another one is not to be had. */
@DisplayName("CAS-2b a doubted connection gives way only to one that is there")
class DoubtTest {
  private static final Duration TWO = Duration.ofSeconds(2);

  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();

  @RegisterExtension final ProxiedRing one = new ProxiedRing(settings -> settings.meters(meters));

  private final VirtualTimeScheduler time = one.time;
  private final ScriptedCas server = one.server;
  private final FaultProxy proxy = one.proxy;
  private final CasRing ring = one.ring;
  private final Digest digest = server.put("content");

  @BeforeEach
  void connect() {
    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
  }

  /** Calls that their callers give up, until the connection is doubted. */
  private void doubt() {
    for (int i = 0; i < 3; i++) {
      Disposable running = ring.read(digest).subscribe(piece -> {}, failure -> {});
      until("it is under way", () -> ring.openCalls() == 1);
      time.advanceTimeBy(TWO);
      running.dispose();
      until("it has ended", () -> ring.openCalls() == 0);
    }
  }

  private void awaitFailures(int attempts) {
    until(
        attempts + " attempts have failed",
        () ->
            meters.find("timebound.cas.connect.failures").counters().stream()
                    .mapToDouble(Counter::count)
                    .sum()
                == attempts);
  }

  @Test
  @DisplayName("CAS-2b where the new one is refused the slow one serves on")
  void refused() {
    server.reads().always(CasScript.silence());
    proxy.refuse();
    doubt();
    awaitFailures(1);
    server.reads().heal();

    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
    assertThat(proxy.accepted()).isEqualTo(1);
    assertThat(one.status()).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-2b while the new one is slow to come calls wait a tenth of its limit for it")
  void slowToCome() {
    server.reads().always(CasScript.silence());
    proxy.acceptAndSayNothing();
    doubt();
    until("it is tried", () -> proxy.accepted() == 2);
    server.reads().heal();
    CompletableFuture<@Nullable Throwable> read = end(ring.read(digest));

    time.advanceTimeBy(Duration.ofMillis(499));
    assertThat(ring.openCalls()).isZero();
    time.advanceTimeBy(Duration.ofMillis(1));
    assertThat(read.join()).isNull();

    time.advanceTimeBy(Duration.ofSeconds(5));
    awaitFailures(1);
    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
  }

  @Test
  @DisplayName("CAS-2b CAS-1 where neither says anything the endpoint has failed")
  void silent() {
    proxy.freezeEstablished();
    proxy.acceptAndSayNothing();
    doubt();
    until("it is tried", () -> proxy.accepted() == 2);
    CompletableFuture<@Nullable Throwable> read = end(ring.read(digest));

    time.advanceTimeBy(Duration.ofSeconds(5));
    awaitFailures(1);

    CompletableFuture<@Nullable Throwable> next = end(ring.read(digest));
    assertThat(next).isDone();
    assertThat(next.join()).hasMessageContaining("not connected within PT5S");
    time.advanceTimeBy(Duration.ofSeconds(30)); // what was sent on the old one runs into its limit
    assertThat(read.join()).hasMessageContaining("DEADLINE_EXCEEDED");
  }

  @Test
  @DisplayName("CAS-2b CAS-1 one that was kept is dropped where calls wait in vain once more")
  void twice() {
    proxy.freezeEstablished();
    proxy.refuse();
    doubt();
    awaitFailures(1);
    doubt();
    awaitFailures(2);

    CompletableFuture<@Nullable Throwable> read = end(ring.read(digest));
    assertThat(read).isDone();
    assertThat(read.join()).hasMessageContaining("UNAVAILABLE");
  }

  @Test
  @DisplayName("CAS-2b what comes in on one that was kept ends the doubt")
  void heard() {
    server.reads().always(CasScript.silence());
    proxy.refuse();
    doubt();
    awaitFailures(1);
    server.reads().heal();
    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
    server.reads().always(CasScript.silence());
    doubt();
    awaitFailures(2);
    server.reads().heal();

    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
  }

  @Test
  @DisplayName("CAS-2b CAS-2a a trial that gets no new connection is made on the one that was kept")
  void trial() {
    server.reads().always(CasScript.status(Status.UNAVAILABLE));
    for (int i = 0; i < 3; i++) {
      failure(ring.read(digest));
    }
    assertThat(one.status()).isEqualTo(MemberStatus.QUARANTINED);
    server.reads().heal();
    proxy.refuse();
    time.advanceTimeBy(Duration.ofSeconds(5));

    assertThat(ring.readAll(digest).block(LONG)).isNotNull();

    assertThat(one.status()).isEqualTo(MemberStatus.HEALTHY);
    assertThat(proxy.accepted()).isEqualTo(1);
  }

  @Test
  @DisplayName("CAS-2b what runs on the one that gave way runs on, and closes it with its end")
  void runsOn() {
    Digest large = server.put(new byte[4 << 20]);
    Taker reader = new Taker();
    ring.read(large).subscribe(reader);
    reader.request(1);
    until("it has its piece", () -> reader.pieces.size() == 1);
    server.reads().always(CasScript.silence());
    for (int i = 0; proxy.accepted() == 1; i++) {
      assertThat(i).isLessThan(10);
      Disposable running = ring.read(digest).subscribe(piece -> {}, failure -> {});
      until("it is under way", () -> ring.openCalls() == 2);
      time.advanceTimeBy(TWO);
      running.dispose();
      until("it has ended", () -> ring.openCalls() == 1);
      Patience.rest();
    }
    server.reads().heal();
    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
    assertThat(server.openConnections()).isEqualTo(2);

    reader.request(Long.MAX_VALUE);

    assertThat(reader.end.join()).isNull();
    server.awaitOpenConnections(1);
  }
}
