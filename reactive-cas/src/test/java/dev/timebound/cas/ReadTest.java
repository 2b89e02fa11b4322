package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.code;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static dev.timebound.cas.TestRing.joined;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasConnection;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What one read does on one shard. */
class ReadTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(UnaryOperator<CasRingBuilder> settings) {
    return rings.of(1, settings);
  }

  private TestRing ring() {
    return ring(settings -> settings);
  }

  @Nested
  class Bytes {
    @Test
    @DisplayName("CAS-30 a blob comes in pieces, read-only and the reader's to keep")
    void pieces() {
      TestRing t = ring();
      byte[] content = t.contentOf(0, 1000);
      t.put(content, 0);
      t.server(0).reads().always(CasScript.correct().chunkSize(300));

      List<ByteBuffer> pieces = t.ring.read(Digest.of(content)).collectList().block(LONG);

      assertThat(pieces).hasSize(4).allMatch(ByteBuffer::isReadOnly);
      assertThat(joined(pieces)).isEqualTo(content);
      CasCall call = t.server(0).reads().awaitCall(1);
      assertThat(call.resourceName()).isEqualTo("blobs/" + Digest.of(content));
      assertThat(call.offset()).isZero();
      assertThat(call.limit()).isZero();
    }

    @Test
    @DisplayName("CAS-30 the empty blob is never asked of the network")
    void empty() {
      TestRing t = ring();

      assertThat(t.bytes(Digest.of(new byte[0]))).isEmpty();
      assertThat(t.ring.read(Digest.empty(DigestFunction.BLAKE3)).collectList().block(LONG))
          .isEmpty();
      assertThat(t.server(0).calls()).isEmpty();
    }

    @Test
    @DisplayName("CAS-30 a wrong byte is DATA_LOSS that names the digest, before the last piece")
    void wrongByte() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().chunkSize(600).wrongByteAt(3));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(10);

      assertThat(taker.end.join())
          .isInstanceOfSatisfying(
              DataLossException.class, e -> assertThat(e.digest()).isEqualTo(digest));
      assertThat(taker.pieces).hasSize(1);
      assertThat(t.reads(0)).isEqualTo(1);
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-30a content that is too long is a permanent error, within a piece or after")
    void tooLong() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0)
          .reads()
          .next(
              CasScript.correct().chunkSize(600).tooLong(1),
              CasScript.correct().chunkSize(500).tooLong(1));

      assertThat(failure(t.ring.read(digest))).isInstanceOf(DataLossException.class);
      assertThat(failure(t.ring.read(digest)))
          .isInstanceOf(DataLossException.class)
          .hasMessageContaining("more than 1000 bytes");
      assertThat(t.reads(0)).isEqualTo(2);
    }

    @Test
    @DisplayName(
        "CAS-30a what comes after the last byte is seen though the reader asked for no more")
    void tooLongUnasked() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().chunkSize(500).tooLong(1));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(2);

      assertThat(taker.end.join()).isInstanceOf(DataLossException.class);
    }

    @Test
    @DisplayName("CAS-30 a stream that ends too early with OK is DATA_LOSS")
    void tooShort() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().tooShort(1));

      assertThat(failure(t.ring.read(digest))).isInstanceOf(DataLossException.class);
    }

    @Test
    @DisplayName("CAS-30a an error after the last byte is no error")
    void errorAfterLast() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0)
          .reads()
          .next(CasScript.correct().chunkSize(500).stopAfter(2, CasEnd.status(Status.UNAVAILABLE)));

      assertThat(end(t.ring.read(digest)).join()).isNull();
    }

    @Test
    @DisplayName("CAS-30a a goodbye that does not come is not waited for long")
    void noGoodbye() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().chunkSize(500).stopAfter(2, CasEnd.silence()));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(10);
      until("both pieces came", () -> taker.pieces.size() == 2);

      t.passUntilDone(taker.end, Duration.ofSeconds(1));

      assertThat(taker.end.join()).isNull();
      assertThat(t.server(0).reads().awaitCall(1).awaitEnd())
          .isEqualTo(CasCall.End.RESET_BY_CLIENT);
    }

    @Test
    @DisplayName(
        "CAS-30 empty messages are signs of life: none reaches the reader, none is the end")
    void keepAlives() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().chunkSize(300).keepAlives(3));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(4);

      assertThat(taker.end.join()).isNull();
      assertThat(taker.pieces).hasSize(4).allMatch(ByteBuffer::hasRemaining);
    }

    @Test
    @DisplayName("CAS-30b what its home has not is a BlobNotFoundException")
    void missing() {
      TestRing t = ring();
      Digest digest = t.put(0);

      assertThat(failure(t.ring.read(digest)))
          .isInstanceOfSatisfying(
              BlobNotFoundException.class, e -> assertThat(e.digest()).isEqualTo(digest))
          .hasMessageContaining("s0");
      assertThat(t.reads(0)).isEqualTo(1);
    }

    @Test
    @DisplayName("CAS-30b trouble of the server is never told as missing")
    void trouble() {
      TestRing t = ring(settings -> settings.retries(0));
      Digest digest = t.put(0, 0);
      for (Status.Code each : Status.Code.values()) {
        if (each == Status.Code.OK || each == Status.Code.NOT_FOUND) {
          continue;
        }
        t.server(0).reads().next(CasScript.status(each.toStatus()));
        Throwable failure = failure(t.ring.read(digest));
        assertThat(failure).as("%s", each).isNotInstanceOf(BlobNotFoundException.class);
        assertThat(code(failure)).isEqualTo(each);
        t.readsRight(digest);
      }
    }

    @Test
    @DisplayName("CAS-30 an array is made of a blob; one too large for it is refused")
    void readAll() {
      TestRing t = ring();
      byte[] content = t.contentOf(0, 200_000);
      t.put(content, 0);

      assertThat(t.bytes(Digest.of(content))).isEqualTo(content);
      Digest huge = Digest.of("0".repeat(64), 1L << 31, DigestFunction.SHA256);
      assertThat(failure(t.ring.readAll(huge)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("size: 2147483648 (expected: <= 2147483639 for readAll)");
    }
  }

  @Nested
  class Demand {
    @Test
    @DisplayName(
        "CAS-33 nothing is called before the reader asks, and a cancel then leaves nothing")
    void nothingBefore() {
      TestRing t = ring();
      Digest digest = t.put(0, 0);
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);

      assertThat(t.server(0).calls()).isEmpty();
      assertThat(t.ring.health().openClaims()).isZero();
      taker.cancel();
    }

    @Test
    @DisplayName("CAS-33 a slow reader holds back the server")
    void slowReader() {
      TestRing t = ring();
      int size = 32 << 20;
      Digest digest = t.put(t.contentOf(0, size), 0);
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(1);
      CasCall call = t.server(0).reads().awaitCall(1);
      until("the first piece came", () -> taker.pieces.size() == 1);

      // what the server could hand on, in more time than it needs for all of it
      long before;
      do {
        before = call.dataBytesSent();
        Patience.rest();
      } while (call.dataBytesSent() != before);

      assertThat(call.dataBytesSent()).isLessThan(size / 4);
      assertThat(taker.pieces).hasSize(1);
      taker.request(Long.MAX_VALUE);
      assertThat(taker.end.join()).isNull();
      assertThat(Digest.of(joined(taker.pieces))).isEqualTo(digest);
    }

    @Test
    @DisplayName("CAS-33 a cancel ends the call at the server")
    void cancel() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().chunkSize(500).stopAfter(1, CasEnd.silence()));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(10);
      until("a piece came", () -> taker.pieces.size() == 1);

      taker.cancel();

      assertThat(t.server(0).reads().awaitCall(1).awaitEnd())
          .isEqualTo(CasCall.End.RESET_BY_CLIENT);
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }
  }

  @Nested
  @DisplayName("CAS-33 what came in and was never asked for is let go when the reader leaves")
  class Leftovers {
    /** More than a connection needs for itself, and much less than comes in ahead of a reader. */
    private static final long HELD = 100_000;

    private final TestRing t = ring();
    private final Taker taker = new Taker();
    private final Digest digest = t.put(t.contentOf(0, 8 << 20), 0);
    private final CasConnection connection = t.server(0).connections().get(0);

    @AfterEach
    void leaves() {
      taker.cancel();
    }

    @BeforeEach
    void readsAPieceAndNoMore() {
      until("nothing is held", () -> connection.memoryInUse() < HELD);
      t.ring.read(digest).subscribe(taker);
      taker.request(1);
      until("a piece came", () -> taker.pieces.size() == 1);
      until("more has come in", () -> connection.memoryInUse() > 500_000);
    }

    private void isLetGo() {
      taker.cancel();
      until("nothing is held", () -> connection.memoryInUse() < HELD);
    }

    @Test
    @DisplayName("CAS-33 of a connection that stands")
    void alive() {
      isLetGo();
    }

    @Test
    @DisplayName("CAS-33 of a connection that broke, whose calls hear of no cancel")
    void broken() {
      t.server(0).resetConnections();
      t.server(0).awaitOpenConnections(1); // the next one
      until("it is closed", () -> !connection.isOpen());
      // what was in use for a moment only may be free by now
      assertThat(connection.memoryInUse()).isGreaterThan(HELD);
      isLetGo();
    }
  }
}
