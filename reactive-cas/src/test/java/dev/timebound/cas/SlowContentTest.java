package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.test.FaultProxy;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Sinks;
import reactor.test.scheduler.VirtualTimeScheduler;

/** Uploads that their callers give up: whose turn it was. */
@DisplayName("CAS-2b content that is slow is no silence of the server's")
class SlowContentTest {
  private static final Duration TWO = Duration.ofSeconds(2);

  @RegisterExtension final ProxiedRing one = new ProxiedRing(settings -> settings);
  private final VirtualTimeScheduler time = one.time;
  private final ScriptedCas server = one.server;
  private final FaultProxy proxy = one.proxy;
  private final CasRing ring = one.ring;
  private final byte[] content = new byte[4 << 20];

  @BeforeEach
  void connect() {
    assertThat(ring.write(new byte[] {1}).block(LONG)).isNotNull();
  }

  private void givenUp(Flux<ByteBuffer> upload, long arrived, Duration first) {
    int before = server.writes().calls().size();
    AtomicInteger given = new AtomicInteger();
    Disposable running =
        ring.write(Digest.of(content), upload.doOnNext(piece -> given.incrementAndGet()))
            .subscribe(done -> {}, e -> {});
    until("it is under way", () -> ring.openCalls() == 1);
    if (arrived >= 0) {
      until(
          "the server has what was given",
          () ->
              server.writes().calls().size() > before
                  && server.writes().calls().get(before).dataBytes() >= arrived);
    } else {
      until("something is at hand", () -> given.get() > 0);
      Patience.rest();
    }
    time.advanceTimeBy(first);
    running.dispose();
    until("it has ended", () -> ring.openCalls() == 0);
  }

  @Test
  @DisplayName("CAS-2b content that gives nothing more: the connection stays")
  void slow() {
    Flux<ByteBuffer> slow =
        Flux.concat(Flux.just(ByteBuffer.wrap(content, 0, 70_000)), Flux.never());
    for (int i = 0; i < 4; i++) {
      givenUp(slow, 64 << 10, TWO);
    }
    assertThat(ring.write(new byte[] {2}).block(LONG)).isNotNull();
    assertThat(proxy.accepted()).isEqualTo(1);
  }

  @Test
  @DisplayName("CAS-2b a server that takes nothing while something is at hand: it is replaced")
  void frozen() {
    proxy.freezeEstablished();
    for (int i = 0; i < 3; i++) {
      givenUp(Flux.just(ByteBuffer.wrap(content)), -1, TWO);
    }
    until("it connects anew", () -> proxy.accepted() == 2);
  }

  @Test
  @DisplayName("CAS-2b a server that has all and does not answer: it is replaced")
  void noAnswer() {
    server.writes().always(CasScript.silence());
    byte[] small = {3};
    for (int i = 0; i < 3; i++) {
      int before = server.writes().calls().size();
      Disposable running = ring.write(small).subscribe(done -> {}, e -> {});
      until("it is there", () -> server.writes().calls().size() > before);
      Patience.rest();
      time.advanceTimeBy(TWO);
      running.dispose();
      until("it has ended", () -> ring.openCalls() == 0);
    }
    until("it connects anew", () -> proxy.accepted() == 2);
  }

  @Test
  @DisplayName(
      "CAS-2b of an upload whose content was slow first, only the time since its end counts")
  void slowAtFirst() {
    server.writes().always(CasScript.silence());
    for (int i = 0; i < 3; i++) {
      Sinks.Many<ByteBuffer> source = Sinks.many().unicast().onBackpressureBuffer();
      Disposable running =
          ring.write(Digest.of(new byte[] {4}), source.asFlux()).subscribe(done -> {}, e -> {});
      until("it is under way", () -> ring.openCalls() == 1);
      Patience.rest();
      time.advanceTimeBy(TWO);
      source.tryEmitNext(ByteBuffer.wrap(new byte[] {4})).orThrow();
      source.tryEmitComplete().orThrow();
      Patience.rest();
      time.advanceTimeBy(Duration.ofSeconds(1));
      running.dispose();
      until("it has ended", () -> ring.openCalls() == 0);
    }
    assertThat(proxy.accepted()).isEqualTo(1);
  }
}
