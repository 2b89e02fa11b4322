package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.code;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static dev.timebound.cas.TestRing.joined;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.RetryBudget;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** How long a read takes on one shard, and what it tries again. */
class ReadTimeTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(UnaryOperator<CasRingBuilder> settings) {
    return rings.of(1, settings);
  }

  private TestRing ring() {
    return ring(settings -> settings);
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
          failure(t.ring.read(digest).transform(Deadlines.within(Duration.ofSeconds(2))));

      assertThat(failure)
          .isInstanceOfSatisfying(
              DeadlineExceededException.class,
              e -> assertThat(e.operation()).isEqualTo("cas.read"));
      assertThat(t.server(0).reads().awaitCall(1).timeout())
          .isBetween(Duration.ofMillis(1), Duration.ofSeconds(2));
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

  @Test
  @DisplayName("CAS-4 DL-11 a read earns its share of the retry budget")
  void earnsARetry() {
    RetryBudget budget = RetryBudget.builder().share(1).perSecond(0).build();
    TestRing t = ring(settings -> settings.retryBudget(budget));
    Digest digest = t.put(0, 0);
    t.server(0).reads().next(CasScript.status(Status.ABORTED));
    CompletableFuture<byte[]> read = t.ring.readAll(digest).toFuture();
    t.passPauses(read);

    assertThat(Digest.of(read.join())).isEqualTo(digest);
  }
}
