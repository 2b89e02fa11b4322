package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static dev.timebound.cas.TestRing.joined;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasConnection;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;

/** What one read does on one shard. */
class ReadTest {
  private final List<TestRing> rings = new ArrayList<>();

  private TestRing ring(UnaryOperator<CasRingBuilder> settings) {
    TestRing made = TestRing.of(1, settings);
    rings.add(made);
    return made;
  }

  private TestRing ring() {
    return ring(settings -> settings);
  }

  @AfterEach
  void close() {
    rings.forEach(TestRing::close);
  }

  private static Status.Code code(Throwable failure) {
    return ((StatusRuntimeException) failure).getStatus().getCode();
  }

  /** Takes what it is told to, and keeps it. */
  private static final class Taker extends BaseSubscriber<ByteBuffer> {
    final List<ByteBuffer> pieces = new CopyOnWriteArrayList<>();
    final CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();

    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      // asks when it is told to
    }

    @Override
    protected void hookOnNext(ByteBuffer piece) {
      pieces.add(piece);
    }

    @Override
    protected void hookOnError(Throwable failure) {
      end.complete(failure);
    }

    @Override
    protected void hookOnComplete() {
      end.complete(null);
    }
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
    private final TestRing t = ring();
    private final Taker taker = new Taker();
    private final Digest digest = t.put(t.contentOf(0, 8 << 20), 0);
    private final CasConnection connection = t.server(0).connections().get(0);

    @BeforeEach
    void readsAPieceAndNoMore() {
      until("nothing is held", () -> connection.memoryInUse() < 100_000);
      t.ring.read(digest).subscribe(taker);
      taker.request(1);
      until("a piece came", () -> taker.pieces.size() == 1);
      until("more has come in", () -> connection.memoryInUse() > 500_000);
    }

    private void isLetGo() {
      taker.cancel();
      until("nothing is held", () -> connection.memoryInUse() < 100_000);
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
      assertThat(connection.memoryInUse()).isGreaterThan(500_000);
      isLetGo();
    }
  }

  @Nested
  class Time {
    @Test
    @DisplayName("CAS-3 rpcTimeout bounds a read up to its first piece, without a deadline too")
    void firstPiece() {
      TestRing t = ring(settings -> settings.retries(0));
      Digest digest = t.put(0, 0);
      t.server(0).reads().next(CasScript.silence());
      CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
      t.server(0).reads().awaitCall(1);

      t.pass(Duration.ofMillis(29_999));
      assertThat(end).isNotDone();
      t.pass(Duration.ofMillis(1));

      assertThat(code(end.join())).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
      assertThat(end.join()).hasMessageContaining("s0");
      assertThat(t.server(0).reads().awaitCall(1).awaitEnd())
          .isEqualTo(CasCall.End.RESET_BY_CLIENT);
    }

    @Test
    @DisplayName("CAS-3 a gap between two pieces ends the read, the rpcTimeout does not")
    void gap() {
      TestRing t = ring(settings -> settings.retries(0));
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      CompletableFuture<Void> gate = new CompletableFuture<>();
      t.server(0)
          .reads()
          .next(CasScript.correct().after(gate).chunkSize(500).stopAfter(1, CasEnd.silence()));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(10);
      t.server(0).reads().awaitCall(1);
      t.pass(Duration.ofSeconds(25)); // the first piece may take long
      gate.complete(null);
      until("a piece came", () -> taker.pieces.size() == 1);

      t.pass(Duration.ofMillis(9_999));
      assertThat(taker.end).isNotDone();
      t.passUntilDone(taker.end, Duration.ofMillis(1));

      assertThat(code(taker.end.join())).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
      assertThat(taker.end.join()).hasMessageContaining("nothing received for PT10S");
    }

    @Test
    @DisplayName("CAS-3 a slow reader runs into no limit")
    void slowReader() {
      TestRing t = ring();
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().chunkSize(300));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      for (int i = 1; i <= 4; i++) {
        int n = i;
        taker.request(1);
        until("piece " + n + " came", () -> taker.pieces.size() == n);
        if (i < 4) {
          t.pass(Duration.ofHours(1));
        }
      }
      assertThat(taker.end.join()).isNull();
    }

    @Test
    @DisplayName("CAS-3 with the rpcTimeout off the gap holds all the same")
    void gapAlone() {
      TestRing t = ring(settings -> settings.retries(0).rpcTimeout(Duration.ZERO));
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0).reads().next(CasScript.correct().chunkSize(500).stopAfter(1, CasEnd.silence()));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(10);
      until("a piece came", () -> taker.pieces.size() == 1);

      t.passUntilDone(taker.end, Duration.ofSeconds(10));

      assertThat(code(taker.end.join())).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
    }

    @Test
    @DisplayName("CAS-3 the caller's deadline bounds it, and travels with the call")
    void deadline() {
      TestRing t = ring();
      Digest digest = t.put(0, 0);
      t.server(0).reads().next(CasScript.silence());

      Throwable failure =
          failure(t.ring.read(digest).transform(Deadlines.within(Duration.ofMillis(300))));

      assertThat(failure)
          .isInstanceOfSatisfying(
              DeadlineExceededException.class,
              e -> assertThat(e.operation()).isEqualTo("cas.read"));
      assertThat(t.server(0).reads().awaitCall(1).timeout())
          .isBetween(Duration.ofMillis(1), Duration.ofMillis(300));
    }

    @Test
    @DisplayName("CAS-20a neither the caller's deadline nor its cancel makes a shard suspect")
    void callersOwn() {
      TestRing t = ring();
      Digest digest = t.put(0, 0);
      t.server(0).reads().always(CasScript.silence());
      for (int i = 0; i < 5; i++) {
        assertThat(failure(t.ring.read(digest).transform(Deadlines.within(Duration.ofMillis(20)))))
            .isInstanceOf(DeadlineExceededException.class);
        t.ring.read(digest).take(Duration.ofMillis(20)).blockLast(LONG);
      }

      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
      t.server(0).reads().heal();
      t.readsRight(digest);
    }

    @Test
    @DisplayName("CAS-3 where the deadline has passed nothing is called")
    void expired() {
      TestRing t = ring();
      Deadline passed = Deadline.after(Duration.ZERO);

      assertThat(
              failure(
                  t.ring.read(t.put(0, 0)).contextWrite(context -> Deadlines.put(context, passed))))
          .isInstanceOf(DeadlineExceededException.class);
      assertThat(t.server(0).calls()).isEmpty();
    }
  }

  @Nested
  class Retries {
    @Test
    @DisplayName("CAS-4 what is transient is tried again, three times at most")
    void transientOnes() {
      TestRing t = ring();
      Digest digest = t.put(0, 0);
      for (Status status :
          List.of(
              Status.UNAVAILABLE,
              Status.ABORTED,
              Status.UNKNOWN,
              Status.CANCELLED,
              Status.RESOURCE_EXHAUSTED,
              Status.DEADLINE_EXCEEDED)) {
        int before = t.reads(0);
        t.server(0).reads().always(CasScript.status(status));
        CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
        t.passPauses(end);
        assertThat(code(end.join())).isEqualTo(status.getCode());
        assertThat(t.reads(0) - before).as("%s", status).isEqualTo(4);
        t.server(0).reads().heal();
        t.readsRight(digest);
      }
    }

    @Test
    @DisplayName("CAS-4 what is not is told at once")
    void finalOnes() {
      TestRing t = ring();
      Digest digest = t.put(0, 0);
      for (Status status :
          List.of(
              Status.INTERNAL,
              Status.INVALID_ARGUMENT,
              Status.PERMISSION_DENIED,
              Status.UNIMPLEMENTED,
              Status.UNAUTHENTICATED,
              Status.DATA_LOSS,
              Status.FAILED_PRECONDITION)) {
        int before = t.reads(0);
        t.server(0).reads().next(CasScript.status(status));
        assertThat(code(failure(t.ring.read(digest)))).isEqualTo(status.getCode());
        assertThat(t.reads(0) - before).as("%s", status).isEqualTo(1);
      }
    }

    @Test
    @DisplayName("CAS-4 INTERNAL or CANCELLED from a reset is tried again")
    void resets() {
      TestRing t = ring();
      Digest digest = t.put(0, 0);
      for (CasEnd reset :
          List.of(CasEnd.reset(2), CasEnd.reset(8), CasEnd.goAway(0), CasEnd.closeConnection())) {
        t.server(0).reads().next(CasScript.correct().stopAfter(0, reset));
        CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
        t.passPauses(end);
        assertThat(end.join()).isNull();
      }
    }

    @Test
    @DisplayName("CAS-4 no retry starts that the deadline would not outlast")
    void withinTheDeadline() {
      TestRing t = ring();
      Digest digest = t.put(0, 0);
      CompletableFuture<Void> gate = new CompletableFuture<>();
      t.server(0).reads().always(CasScript.status(Status.ABORTED).after(gate));
      Deadline deadline = Deadline.after(Duration.ofSeconds(10), t.time);
      CompletableFuture<@Nullable Throwable> end =
          end(t.ring.read(digest).contextWrite(context -> Deadlines.put(context, deadline)));
      t.server(0).reads().awaitCall(1);
      t.pass(Duration.ofMillis(9_995));
      gate.complete(null);

      assertThat(code(end.join())).isEqualTo(Status.Code.ABORTED);
      assertThat(t.reads(0)).isEqualTo(1);
    }

    @Test
    @DisplayName("CAS-4 no retry is made that the budget does not grant")
    void budget() {
      TestRing t =
          ring(
              settings ->
                  settings.retryBudget(
                      dev.timebound.deadline.RetryBudget.builder().share(0).perSecond(0).build()));
      Digest digest = t.put(0, 0);
      t.server(0).reads().always(CasScript.status(Status.ABORTED));

      assertThat(code(failure(t.ring.read(digest)))).isEqualTo(Status.Code.ABORTED);
      assertThat(t.reads(0)).isEqualTo(1);
    }
  }

  @Nested
  class Resume {
    @Test
    @DisplayName("CAS-22 CAS-30a with resumeMidStream what is left is asked for, and only that")
    void resumes() {
      TestRing t = ring(settings -> settings.resumeMidStream(true));
      byte[] content = t.contentOf(0, 1000);
      Digest digest = t.put(content, 0);
      t.server(0)
          .reads()
          .next(CasScript.correct().chunkSize(300).stopAfter(2, CasEnd.status(Status.UNAVAILABLE)));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(Long.MAX_VALUE);
      t.passPauses(taker.end);

      assertThat(taker.end.join()).isNull();
      assertThat(joined(taker.pieces)).isEqualTo(content);
      CasCall second = t.server(0).reads().awaitCall(2);
      assertThat(second.offset()).isEqualTo(600);
      assertThat(second.limit()).isEqualTo(400);
    }

    @Test
    @DisplayName("CAS-30a a server that ignores read_offset is DATA_LOSS, in bounded memory")
    void ignoresOffset() {
      TestRing t = ring(settings -> settings.resumeMidStream(true));
      Digest digest = t.put(t.contentOf(0, 1000), 0);
      t.server(0)
          .reads()
          .next(
              CasScript.correct().chunkSize(300).stopAfter(2, CasEnd.status(Status.UNAVAILABLE)),
              CasScript.correct().chunkSize(300).ignoringOffset().ignoringLimit());
      CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
      t.passPauses(end);

      assertThat(end.join()).isInstanceOf(DataLossException.class);
      assertThat(t.reads(0)).isEqualTo(2);
    }

    @Test
    @DisplayName("CAS-4 progress gives the attempts back")
    void attemptsBack() {
      TestRing t = ring(settings -> settings.resumeMidStream(true));
      byte[] content = t.contentOf(0, 1000);
      Digest digest = t.put(content, 0);
      t.server(0)
          .reads()
          .always(
              CasScript.correct().chunkSize(100).stopAfter(1, CasEnd.status(Status.UNAVAILABLE)));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(Long.MAX_VALUE);
      t.passPauses(taker.end);

      assertThat(taker.end.join()).isNull();
      assertThat(joined(taker.pieces)).isEqualTo(content);
      assertThat(t.reads(0)).isEqualTo(10);
    }

    @Test
    @DisplayName("CAS-22 a stream that nobody reads makes no further attempt")
    void nobodyReads() {
      TestRing t = ring(settings -> settings.resumeMidStream(true));
      byte[] content = t.contentOf(0, 1000);
      Digest digest = t.put(content, 0);
      t.server(0)
          .reads()
          .next(CasScript.correct().chunkSize(500).stopAfter(1, CasEnd.status(Status.UNAVAILABLE)));
      Taker taker = new Taker();
      t.ring.read(digest).subscribe(taker);
      taker.request(1);
      t.server(0).reads().awaitCall(1).awaitEnd();
      until("a piece came", () -> taker.pieces.size() == 1);
      until("the failure was seen", () -> t.ring.health().openClaims() == 0);
      t.pass(Duration.ofSeconds(5));
      assertThat(t.reads(0)).isEqualTo(1);

      taker.request(10);
      t.passPauses(taker.end);

      assertThat(taker.end.join()).isNull();
      assertThat(joined(taker.pieces)).isEqualTo(content);
    }
  }
}
