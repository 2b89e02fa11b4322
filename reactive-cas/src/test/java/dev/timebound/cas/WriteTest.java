package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.failure;
import static dev.timebound.cas.Uploads.CHUNK;
import static dev.timebound.cas.Uploads.code;
import static dev.timebound.cas.Uploads.ended;
import static dev.timebound.cas.Uploads.failed;
import static dev.timebound.cas.Uploads.pieces;
import static dev.timebound.cas.Uploads.written;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.CasScript.CommittedSize;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;

/** What one write does. */
class WriteTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  private TestRing ring() {
    return ring(1, settings -> settings);
  }

  @Nested
  @DisplayName("CAS-26 where a blob goes")
  class Home {
    @Test
    @DisplayName("CAS-26 to its home alone, whichever shard of many that is")
    void homeAlone() {
      TestRing ring = ring(5, settings -> settings);
      for (int home = 0; home < 5; home++) {
        byte[] content = ring.contentOf(home, 1000);
        Digest digest = Digest.of(content);
        assertThat(written(ring.ring.write(digest, content)))
            .isEqualTo(new WriteResult(digest, false));
        for (int server = 0; server < 5; server++) {
          assertThat(ring.server(server).has(digest)).isEqualTo(server == home);
        }
        CasCall call = ring.server(home).writes().awaitCall(1);
        assertThat(call.resourceName()).matches("uploads/[-0-9a-f]{36}/blobs/" + digest);
      }
      for (int server = 0; server < 5; server++) {
        assertThat(ring.server(server).writes().calls()).hasSize(1);
      }
    }

    @Test
    @DisplayName("CAS-26 a dead home fails the write, and no neighbour is asked")
    void deadHome() {
      TestRing ring = ring(3, settings -> settings.retries(1));
      byte[] content = ring.contentOf(1, 1000);
      ring.kill(1);
      Throwable failure = failed(ring, ring.ring.write(content));
      assertThat(failure).isInstanceOf(StatusRuntimeException.class);
      assertThat(code(failure)).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(failure).hasMessageContaining("s1 at ");
      assertThat(ring.server(0).calls()).isEmpty();
      assertThat(ring.server(2).calls()).isEmpty();
    }

    @Test
    @DisplayName("CAS-26 a suspect home is still the only one; failed writes make it suspect")
    void suspectHome() {
      TestRing ring = ring(2, settings -> settings.retries(0));
      byte[] content = ring.contentOf(0, 1000);
      ring.server(0).writes().always(CasScript.status(Status.UNAVAILABLE));
      for (int i = 0; i < 3; i++) {
        failure(ring.ring.write(content));
      }
      assertThat(ring.status(0)).isEqualTo(MemberStatus.QUARANTINED);
      ring.server(0).heal();
      written(ring.ring.write(content));
      assertThat(ring.server(0).has(Digest.of(content))).isTrue();
      assertThat(ring.server(1).calls()).isEmpty();
      assertThat(ring.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }
  }

  @Nested
  @DisplayName("CAS-30 what is sent")
  class Content {
    @ParameterizedTest
    @ValueSource(ints = {1, 999, 1000, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5_000_000})
    @DisplayName("CAS-26 blobs of all sizes arrive, whatever the buffers are cut like")
    void sizes(int size) {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, size);
      Digest digest = Digest.of(content);
      for (int piece : new int[] {Math.max(1, size / 1000), 7001, CHUNK, size}) {
        ring.server(0).clear();
        written(ring.ring.write(digest, pieces(content, piece)));
        assertThat(ring.server(0).get(digest)).isEqualTo(content);
      }
    }

    @ParameterizedTest
    @ValueSource(ints = {CHUNK, 100_000})
    @DisplayName(
        "CAS-26 small buffers are put together, large ones cut, into pieces of the setting")
    void chunks(int chunk) {
      TestRing ring = ring(1, settings -> settings.writeChunkSize(chunk));
      byte[] content = ring.contentOf(0, 10 * chunk + 5);
      for (int piece : new int[] {100, content.length}) {
        ring.server(0).clear();
        written(ring.ring.write(Digest.of(content), pieces(content, piece)));
      }
      assertThat(ring.server(0).writes().calls())
          .extracting(CasCall::requests)
          .containsExactly(11, 11);
    }

    @Test
    @DisplayName("CAS-30 other bytes, more and fewer are DATA_LOSS, and the upload is not finished")
    void wrongContent() {
      TestRing ring = ring();
      byte[] right = ring.contentOf(0, 3 * CHUNK);
      Digest digest = Digest.of(right);
      byte[] other = right.clone();
      other[2 * CHUNK] ^= 1;
      byte[] more = java.util.Arrays.copyOf(right, right.length + 1);
      byte[] fewer = java.util.Arrays.copyOf(right, right.length - 1);
      for (byte[] wrong : List.of(other, more, fewer, new byte[0])) {
        for (int piece : new int[] {1000, CHUNK, 4 * CHUNK}) {
          Throwable failure = failure(ring.ring.write(digest, pieces(wrong, piece)));
          assertThat(failure)
              .isInstanceOf(DataLossException.class)
              .hasMessageContaining(digest.toString());
        }
      }
      // the last of them may come there only now
      until(
          "each was given up",
          () -> ring.server(0).writes().calls().stream().allMatch(CasCall::cancelled));
      // one that was given up at once may never have come there
      assertThat(ring.server(0).writes().calls()).isNotEmpty().allMatch(CasCall::cancelled);
      assertThat(ring.server(0).digests()).isEmpty();
      assertThat(ring.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-30 the empty blob is never sent; what is given as one is checked")
    void empty() {
      TestRing ring = ring();
      Digest nothing = Digest.of(new byte[0]);
      assertThat(written(ring.ring.write(new byte[0]))).isEqualTo(new WriteResult(nothing, true));
      assertThat(failure(ring.ring.write(nothing, new byte[] {1})))
          .isInstanceOf(DataLossException.class);
      assertThat(ring.server(0).calls()).isEmpty();
    }

    @Test
    @DisplayName("CAS-26 the content's own error is told as it is, is no shard's, and not retried")
    void sourceFails() {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, 3 * CHUNK);
      StatusRuntimeException own = Status.UNAVAILABLE.withDescription("disk").asRuntimeException();
      for (int i = 0; i < 4; i++) {
        Flux<ByteBuffer> broken = Flux.concat(pieces(content, CHUNK).take(2), Flux.error(own));
        assertThat(failure(ring.ring.write(Digest.of(content), broken))).isSameAs(own);
      }
      assertThat(ring.server(0).writes().calls()).hasSizeLessThanOrEqualTo(4);
      assertThat(ring.status(0)).isEqualTo(MemberStatus.HEALTHY);
      until("none is open", () -> ring.server(0).openCalls() == 0);
    }

    @Test
    @DisplayName("CAS-33 a server that takes nothing more holds the content")
    void backpressure() {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, 30 << 20);
      ring.server(0).writes().always(CasScript.correct().stopAfter(1, CasEnd.silence()));
      AtomicLong given = new AtomicLong();
      Flux<ByteBuffer> counted =
          pieces(content, CHUNK).doOnNext(piece -> given.addAndGet(piece.remaining()));
      var running = ring.ring.write(Digest.of(content), counted).subscribe();
      ring.server(0).writes().awaitCall(1);
      AtomicLong before = new AtomicLong(-1);
      until("the content rests", () -> rests(before, given));
      assertThat(given).hasValueLessThan(5 << 20);
      running.dispose();
      ring.server(0).awaitOpenCalls(0);
    }

    private static boolean rests(AtomicLong before, AtomicLong now) {
      java.util.concurrent.locks.LockSupport.parkNanos(100_000_000);
      return now.get() > 0 && before.getAndSet(now.get()) == now.get();
    }
  }

  @Nested
  @DisplayName("CAS-26 an early end")
  class EarlyEnd {
    @Test
    @DisplayName(
        "CAS-26 a blob that is there ends the upload with success; the content is cancelled")
    void there() {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, 20 << 20);
      Digest digest = ring.put(content, 0);
      AtomicLong given = new AtomicLong();
      AtomicInteger cancelled = new AtomicInteger();
      Flux<ByteBuffer> counted =
          pieces(content, CHUNK)
              .doOnNext(piece -> given.addAndGet(piece.remaining()))
              .doOnCancel(cancelled::incrementAndGet);
      assertThat(written(ring.ring.write(digest, counted)))
          .isEqualTo(new WriteResult(digest, true));
      assertThat(given).hasValueLessThan(content.length);
      assertThat(cancelled).hasValue(1);
    }

    @Test
    @DisplayName("CAS-26 a status that closes a write early is seen")
    void earlyStatus() {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, 20 << 20);
      Status full = Status.PERMISSION_DENIED.withDescription("read only");
      ring.server(0).writes().always(CasScript.correct().stopAfter(2, CasEnd.status(full)));
      for (int i = 0; i < 20; i++) {
        Throwable failure = failure(ring.ring.write(Digest.of(content), pieces(content, CHUNK)));
        assertThat(code(failure)).isEqualTo(Status.Code.PERMISSION_DENIED);
        assertThat(failure).hasMessageContaining("read only");
      }
    }

    @ParameterizedTest
    @EnumSource(
        value = CommittedSize.class,
        names = {"WRONG", "MINUS_ONE"})
    @DisplayName("CAS-26 a committed_size that is not the blob's size is an error")
    void committedSize(CommittedSize size) {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, 1000);
      ring.server(0).writes().always(CasScript.correct().committed(size));
      Throwable failure = failure(ring.ring.write(content));
      assertThat(failure)
          .hasMessageContaining("committed_size")
          .hasMessageContaining("(expected: 1000)")
          .hasMessageContaining("s0");
      assertThat(code(failure)).isEqualTo(Status.Code.INTERNAL);
    }
  }

  @Test
  @DisplayName("CAS-26 many writes at once, from threads that must not block")
  void manyAtOnce() {
    TestRing ring = ring(3, settings -> settings);
    List<byte[]> blobs = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      blobs.add(ring.contentOf(i % 3, 1000 * i + 1));
    }
    List<WriteResult> results =
        Flux.fromIterable(blobs)
            .flatMap(
                blob ->
                    ring.ring.write(
                        Digest.of(blob), pieces(blob, 777).publishOn(Schedulers.parallel())),
                20)
            .collectList()
            .block(LONG);
    assertThat(results).hasSize(60);
    for (int i = 0; i < 60; i++) {
      assertThat(ring.server(i % 3).get(Digest.of(blobs.get(i)))).isEqualTo(blobs.get(i));
    }
  }

  @Test
  @DisplayName("CAS-26 what is counted")
  void meters() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    TestRing ring = ring(1, settings -> settings.meters(registry));
    byte[] content = ring.contentOf(0, 10 * CHUNK);
    ring.server(0).writes().next(CasScript.correct().stopAfter(5, CasEnd.reset(2)));
    assertThat(ended(ring, ring.ring.write(content))).isNull();
    ring.server(0).writes().always(CasScript.status(Status.INVALID_ARGUMENT));
    failure(ring.ring.write(ring.contentOf(0, 1)));
    assertThat(registry.get("timebound.cas.writes").tag("outcome", "ok").timer().count())
        .isEqualTo(1);
    assertThat(
            registry.get("timebound.cas.writes").tag("outcome", "invalid_argument").timer().count())
        .isEqualTo(1);
    assertThat(registry.get("timebound.cas.write.resumes").counter().count()).isEqualTo(1);
    assertThat(registry.get("timebound.cas.write.bytes").counter().count())
        .isGreaterThanOrEqualTo(content.length);
  }

  @Test
  @DisplayName("CAS-26 a piece's size out of range is refused at once")
  void setting() {
    CasRingBuilder builder =
        CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s", "127.0.0.1:1"))));
    assertThatThrownBy(() -> builder.writeChunkSize(CHUNK - 1))
        .hasMessage("writeChunkSize: 65535 (expected: 65536 to 1048576)");
    assertThatThrownBy(() -> builder.writeChunkSize((1 << 20) + 1))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
