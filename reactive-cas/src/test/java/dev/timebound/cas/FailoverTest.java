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
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Where reads go, and which answer counts. */
class FailoverTest {
  private static final CasScript DEAD = CasScript.status(Status.UNAVAILABLE);

  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(UnaryOperator<CasRingBuilder> settings) {
    return rings.of(3, settings);
  }

  private TestRing ring() {
    return ring(settings -> settings.retries(0));
  }

  @Nested
  class Order {
    @Test
    @DisplayName("CAS-21 with every shard healthy a read is one call, to the home")
    void oneCall() {
      TestRing t = ring();
      for (int home = 0; home < 3; home++) {
        t.readsRight(t.put(home, 0, 1, 2));
        assertThat(t.reads(home)).isEqualTo(1);
      }
      assertThat(t.servers.stream().mapToInt(s -> s.calls().size()).sum()).isEqualTo(3);
    }

    @Test
    @DisplayName("CAS-21 a healthy home's NOT_FOUND is final")
    void missingAtHome() {
      TestRing t = ring();
      Digest digest = t.put(0, 1, 2);

      assertThat(failure(t.ring.read(digest))).isInstanceOf(BlobNotFoundException.class);
      assertThat(t.reads(1) + t.reads(2)).isZero();
    }

    @Test
    @DisplayName("CAS-21 CAS-11 where the home does not answer the ring goes on, each shard once")
    void goesOn() {
      TestRing t = ring();
      Digest digest = t.put(1, 0);
      t.server(1).reads().always(DEAD);
      t.server(2).reads().always(DEAD);

      t.readsRight(digest);

      assertThat(List.of(t.reads(1), t.reads(2), t.reads(0))).containsExactly(1, 1, 1);
    }

    @Test
    @DisplayName("CAS-21 a shard whose process is dead costs no wait")
    void deadProcess() {
      TestRing t = ring();
      Digest digest = t.put(0, 1);
      t.kill(0);

      t.readsRight(digest);

      assertThat(t.reads(1)).isEqualTo(1);
    }

    @Test
    @DisplayName("CAS-3a a home that is frozen leaves half of the deadline for the next")
    void share() {
      TestRing t = ring();
      Digest digest = t.put(0, 2);
      t.server(0).reads().always(CasScript.silence());
      t.server(1).reads().always(CasScript.silence());

      CompletableFuture<byte[]> read = within(t, digest, Duration.ofSeconds(40));
      t.server(0).reads().awaitCall(1);
      t.pass(Duration.ofSeconds(20)); // its half
      t.server(1).reads().awaitCall(1);
      t.pass(Duration.ofSeconds(10)); // half of what was left

      assertThat(Digest.of(read.join())).isEqualTo(digest);
      assertThat(t.reads(2)).isEqualTo(1);
    }

    @Test
    @DisplayName("CAS-3a the last one has all that is left")
    void lastShare() {
      TestRing t = ring();
      Digest digest = t.put(0);
      t.servers.forEach(server -> server.reads().always(CasScript.silence()));

      CompletableFuture<byte[]> read = within(t, digest, Duration.ofSeconds(40));
      t.server(0).reads().awaitCall(1);
      t.pass(Duration.ofSeconds(20));
      t.server(1).reads().awaitCall(1);
      t.pass(Duration.ofSeconds(10));
      t.server(2).reads().awaitCall(1);
      t.pass(Duration.ofSeconds(10));

      assertThat(read.handle((bytes, failure) -> failure).join())
          .isInstanceOf(DeadlineExceededException.class); // and not its share's
    }

    private CompletableFuture<byte[]> within(TestRing t, Digest digest, Duration budget) {
      Deadline deadline = Deadline.after(budget, t.time);
      return t.ring
          .readAll(digest)
          .contextWrite(context -> Deadlines.put(context, deadline))
          .toFuture()
          .orTimeout(LONG.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    @DisplayName("CAS-3a the end of a share is the shard's failure")
    void shareCounts() {
      TestRing t = ring();
      t.server(0).reads().always(CasScript.silence());
      for (int i = 0; i < 3; i++) {
        CompletableFuture<byte[]> read = within(t, t.put(0, 1), Duration.ofSeconds(20));
        t.server(0).reads().awaitCall(i + 1);
        t.pass(Duration.ofSeconds(10));
        assertThat(read.join()).isNotEmpty();
      }

      assertThat(t.status(0)).isEqualTo(MemberStatus.QUARANTINED);
    }

    @Test
    @DisplayName("CAS-22 no failover once a byte has reached the caller")
    void afterBytes() {
      TestRing t = ring();
      byte[] content = t.contentOf(0, 1000);
      t.put(content, 0, 1, 2);
      t.server(0)
          .reads()
          .next(CasScript.correct().chunkSize(500).stopAfter(1, CasEnd.status(Status.UNAVAILABLE)));

      assertThat(code(failure(t.ring.read(Digest.of(content))))).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(t.reads(1) + t.reads(2)).isZero();
    }

    @Test
    @DisplayName("CAS-22 with resumeMidStream another shard goes on from the byte reached")
    void resumesElsewhere() {
      TestRing t = ring(settings -> settings.resumeMidStream(true));
      byte[] content = t.contentOf(0, 1000);
      t.put(content, 0, 1);
      t.server(0).reads().always(CasScript.correct().chunkSize(300).stopAfter(1, CasEnd.silence()));
      List<ByteBuffer> pieces = new CopyOnWriteArrayList<>();
      CompletableFuture<@Nullable Throwable> end =
          end(t.ring.read(Digest.of(content)).doOnNext(pieces::add));
      until("a piece came", () -> pieces.size() == 1);
      until(
          "the gap is seen",
          () -> {
            t.pass(Duration.ofMillis(200));
            return t.reads(1) == 1;
          });

      assertThat(end.join()).isNull();
      assertThat(joined(pieces)).isEqualTo(content);
      CasCall second = t.server(1).reads().awaitCall(1);
      assertThat(second.offset()).isEqualTo(300);
      assertThat(second.limit()).isEqualTo(700);
    }

    @Test
    @DisplayName("CAS-30 wrong bytes are final: no other shard hides them")
    void wrongBytes() {
      TestRing t = ring();
      Digest digest = t.put(0, 0, 1, 2);
      t.server(0).reads().next(CasScript.correct().wrongByteAt(0));

      assertThat(failure(t.ring.read(digest))).isInstanceOf(DataLossException.class);
      assertThat(t.reads(1) + t.reads(2)).isZero();
    }

    @Test
    @DisplayName("CAS-30 wrong bytes of a neighbour are DATA_LOSS too")
    void neighboursWrongBytes() {
      TestRing t = ring();
      Digest digest = t.put(0, 0, 1, 2);
      t.server(0).reads().next(DEAD);
      t.server(1).reads().next(CasScript.correct().wrongByteAt(0));

      assertThat(failure(t.ring.read(digest))).isInstanceOf(DataLossException.class);
      assertThat(t.reads(2)).isZero();
    }
  }

  @Nested
  class Masking {
    @Test
    @DisplayName("CAS-23 a neighbour's NOT_FOUND never masks the home's error")
    void neighbourMissing() {
      TestRing t = ring();
      Digest digest = t.put(0);
      t.server(0).reads().always(DEAD);

      Throwable failure = failure(t.ring.read(digest));

      assertThat(code(failure)).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(failure).hasMessageContaining("s0");
      assertThat(t.reads(1) + t.reads(2)).isEqualTo(2);
    }

    @Test
    @DisplayName("CAS-23 nor does any other error of a neighbour, and the next one is asked")
    void neighbourRefuses() {
      TestRing t = ring();
      Digest digest = t.put(0, 2);
      t.server(0).reads().always(DEAD);
      t.server(1).reads().always(CasScript.status(Status.PERMISSION_DENIED));
      t.readsRight(digest);
      t.server(2).reads().always(CasScript.status(Status.PERMISSION_DENIED));

      Throwable failure = failure(t.ring.read(digest));

      assertThat(failure).hasMessageContaining("s0");
      assertThat(failure.getSuppressed()) // beside it, what was said last
          .anySatisfy(last -> assertThat(last).hasMessageContaining("PERMISSION_DENIED: s2"));
    }

    @Test
    @DisplayName("CAS-23 a suspect home is tried last before anything is called missing")
    void suspectHomeLast() {
      TestRing t = ring();
      t.server(0).reads().always(DEAD);
      t.makeSuspect(0);
      t.server(0).reads().heal();
      int before = t.reads(0);
      Digest digest = t.put(0, 0);

      t.readsRight(digest);

      assertThat(t.reads(0) - before).isEqualTo(1);
      assertThat(t.reads(1)).isPositive();
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-23 a suspect home that says NOT_FOUND, tried last, is believed")
    void suspectHomeMissing() {
      TestRing t = ring();
      t.server(0).reads().always(DEAD);
      t.makeSuspect(0);
      t.server(0).reads().heal();

      assertThat(failure(t.ring.read(t.put(0)))).isInstanceOf(BlobNotFoundException.class);
    }
  }
}
