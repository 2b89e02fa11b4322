package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static dev.timebound.cas.Uploads.CHUNK;
import static dev.timebound.cas.Uploads.code;
import static dev.timebound.cas.Uploads.ended;
import static dev.timebound.cas.Uploads.failed;
import static dev.timebound.cas.Uploads.once;
import static dev.timebound.cas.Uploads.pieces;
import static dev.timebound.cas.Uploads.upload;
import static dev.timebound.cas.Uploads.written;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** How a write goes on after a failure, and when it ends. */
class WriteResumeTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  private TestRing ring() {
    return ring(1, settings -> settings);
  }

  @Nested
  @DisplayName("CAS-26 going on after a failure")
  class Resume {
    private final TestRing ring = ring(1, settings -> settings.retries(3));

    @Test
    @DisplayName("CAS-26 from what the server has, under the same upload: no byte comes twice")
    void fromCommitted() {
      byte[] content = ring.contentOf(0, 20 * CHUNK);
      Digest digest = Digest.of(content);
      ring.server(0).writes().next(CasScript.correct().stopAfter(5, CasEnd.reset(2)));
      assertThat(ended(ring, ring.ring.write(digest, content))).isNull();
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
      List<CasCall> writes = ring.server(0).writes().calls();
      assertThat(writes).hasSize(2);
      assertThat(writes.get(1).offset()).isEqualTo(5L * CHUNK);
      assertThat(writes.get(1).dataBytes()).isEqualTo(15L * CHUNK);
      assertThat(upload(writes.get(1))).isEqualTo(upload(writes.get(0)));
    }

    @Test
    @DisplayName("CAS-26 where the server cannot tell, all is sent again as another upload")
    void unimplemented() {
      byte[] content = ring.contentOf(0, 10 * CHUNK);
      Digest digest = Digest.of(content);
      ring.server(0).writeStatus().always(CasScript.status(Status.UNIMPLEMENTED));
      CasScript breaks = CasScript.correct().stopAfter(3, CasEnd.reset(2));
      ring.server(0).writes().next(breaks, breaks);
      assertThat(ended(ring, ring.ring.write(digest, content))).isNull();
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
      List<CasCall> writes = ring.server(0).writes().calls();
      assertThat(writes).extracting(CasCall::offset).containsExactly(0L, 0L, 0L);
      assertThat(writes).extracting(Uploads::upload).doesNotHaveDuplicates();
      assertThat(ring.server(0).writeStatus().calls()).as("asked once").hasSize(1);
    }

    @Test
    @DisplayName("CAS-26 a server that has more than the blob has nothing: all is sent anew")
    void committedBeyond() {
      byte[] content = ring.contentOf(0, 4 * CHUNK);
      Digest digest = Digest.of(content);
      ring.server(0).writes().next(CasScript.correct().stopAfter(2, CasEnd.reset(2)));
      ring.server(0).writeStatus().next(CasScript.writeStatus(content.length + 1, false));
      assertThat(ended(ring, ring.ring.write(digest, content))).isNull();
      List<CasCall> writes = ring.server(0).writes().calls();
      assertThat(writes).extracting(CasCall::offset).containsExactly(0L, 0L);
      assertThat(writes).extracting(Uploads::upload).doesNotHaveDuplicates();
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
    }

    @Test
    @DisplayName("CAS-26 an upload that turns out complete is a success")
    void complete() {
      byte[] content = ring.contentOf(0, 4 * CHUNK);
      Digest digest = Digest.of(content);
      ring.server(0).writes().next(CasScript.correct().stopAfter(2, CasEnd.reset(2)));
      ring.server(0).writeStatus().next(CasScript.writeStatus(content.length, true));
      assertThat(ended(ring, ring.ring.write(digest, content))).isNull();
      assertThat(ring.server(0).writes().calls()).hasSize(1);
    }

    @Test
    @DisplayName("CAS-26 where the server has every byte, only the end is sent")
    void onlyTheEnd() {
      byte[] content = ring.contentOf(0, 4 * CHUNK);
      Digest digest = Digest.of(content);
      ring.server(0).writes().next(CasScript.correct().stopAfter(4, CasEnd.reset(2)));
      assertThat(ended(ring, ring.ring.write(digest, content))).isNull();
      CasCall last = ring.server(0).writes().awaitCall(2);
      assertThat(last.offset()).isEqualTo(content.length);
      assertThat(last.dataBytes()).isZero();
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
    }

    @Test
    @DisplayName("CAS-26 content is subscribed to again where too much is missing, and skipped")
    void resubscribed() {
      byte[] content = ring.contentOf(0, 5 << 20);
      Digest digest = Digest.of(content);
      ring.server(0).writes().next(CasScript.correct().stopAfter(50, CasEnd.reset(2)));
      ring.server(0).writeStatus().next(CasScript.writeStatus(100_001, false));
      AtomicInteger subscriptions = new AtomicInteger();
      Flux<ByteBuffer> counted =
          pieces(content, 10_007).doOnSubscribe(s -> subscriptions.incrementAndGet());
      assertThat(ended(ring, ring.ring.write(digest, counted))).isNull();
      assertThat(subscriptions).hasValue(2);
      assertThat(ring.server(0).writes().awaitCall(2).offset()).isEqualTo(100_001);
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
    }

    @Test
    @DisplayName("CAS-26 content that is read once goes on while what is missing is still held")
    void oneShot() {
      byte[] content = ring.contentOf(0, 5 << 20);
      Digest digest = Digest.of(content);
      ring.server(0)
          .writes()
          .next(
              CasScript.correct().stopAfter(30, CasEnd.reset(2)),
              CasScript.correct().stopAfter(20, CasEnd.resetConnection()));
      assertThat(ended(ring, ring.ring.write(digest, once(content, 10_007)))).isNull();
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
    }

    @Test
    @DisplayName(
        "CAS-26 GOAWAY in mid-upload: the first piece is not lost, of one-shot content too")
    void goAway() {
      byte[] content = ring.contentOf(0, 4 * CHUNK);
      Digest digest = Digest.of(content);
      ring.server(0)
          .writes()
          .next(CasScript.correct().stopAfter(1, CasEnd.goAway(0)), CasScript.correct());
      ring.server(0).writeStatus().always(CasScript.status(Status.UNIMPLEMENTED));
      assertThat(ended(ring, ring.ring.write(digest, once(content, 10_000)))).isNull();
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
    }

    @Test
    @DisplayName("CAS-26 a GOAWAY that keeps the upload does not disturb it")
    void goAwayThatKeeps() {
      byte[] content = ring.contentOf(0, 40 * CHUNK);
      Digest digest = Digest.of(content);
      ring.server(0).writes().next(CasScript.correct().goAwayAfter(1));
      assertThat(ended(ring, ring.ring.write(digest, once(content, 10_000)))).isNull();
      assertThat(ring.server(0).writes().calls()).hasSize(1);
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
    }

    @Test
    @DisplayName("CAS-26 one-shot content that would be needed again: the shard's error, and why")
    void oneShotTooFar() {
      byte[] content = ring.contentOf(0, 5 << 20);
      ring.server(0).writes().next(CasScript.correct().stopAfter(60, CasEnd.reset(2)));
      ring.server(0).writeStatus().always(CasScript.status(Status.UNIMPLEMENTED));
      Throwable failure = failed(ring, ring.ring.write(Digest.of(content), once(content, 10_007)));
      assertThat(failure).isInstanceOf(StatusRuntimeException.class);
      assertThat(code(failure)).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(failure.getSuppressed())
          .anySatisfy(e -> assertThat(e).hasMessage("can be read once only"));
    }
  }

  @Nested
  @DisplayName("CAS-4 retries of an upload")
  class Retries {
    @Test
    @DisplayName("CAS-4 at most three without progress, then the error")
    void atMostThree() {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, 2 * CHUNK);
      ring.server(0).writes().always(CasScript.correct().stopAfter(1, CasEnd.reset(2)));
      ring.server(0).writeStatus().always(CasScript.status(Status.UNIMPLEMENTED));
      Throwable failure = failed(ring, ring.ring.write(content));
      assertThat(code(failure)).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(ring.server(0).writes().calls()).hasSize(4);
    }

    @Test
    @DisplayName("CAS-4 progress gives the attempts back")
    void progress() {
      TestRing ring = ring();
      byte[] content = ring.contentOf(0, 20 * CHUNK);
      ring.server(0).writes().answer(call -> CasScript.correct().stopAfter(3, CasEnd.reset(2)));
      assertThat(ended(ring, ring.ring.write(content))).isNull();
      assertThat(ring.server(0).writes().calls()).hasSize(7);
      assertThat(ring.server(0).get(Digest.of(content))).isEqualTo(content);
    }

    @Test
    @DisplayName("CAS-4 what the server refuses for good is not retried")
    void refused() {
      TestRing ring = ring();
      ring.server(0).writes().always(CasScript.status(Status.INVALID_ARGUMENT));
      assertThat(code(failure(ring.ring.write(ring.contentOf(0, 1000)))))
          .isEqualTo(Status.Code.INVALID_ARGUMENT);
      assertThat(ring.server(0).writes().calls()).hasSize(1);
    }

    @Test
    @DisplayName("CAS-4 what has too much to do is asked again")
    void overloaded() {
      TestRing ring = ring();
      ring.server(0).writes().next(CasScript.status(Status.RESOURCE_EXHAUSTED));
      assertThat(ended(ring, ring.ring.write(ring.contentOf(0, 1000)))).isNull();
      assertThat(ring.server(0).writes().calls()).hasSize(2);
    }

    @Test
    @DisplayName("CAS-26 a refused token is renewed, and the upload tried once more")
    void token() {
      AtomicInteger tokens = new AtomicInteger();
      TestRing ring =
          ring(
              1,
              settings ->
                  settings.tokenSource(
                      Mono.fromSupplier(() -> "token" + tokens.incrementAndGet())));
      ring.server(0).requireToken("token1");
      written(ring.ring.write(ring.contentOf(0, 1000)));
      ring.server(0).requireToken("token2");
      written(ring.ring.write(ring.contentOf(0, 10 * CHUNK)));
      assertThat(tokens).hasValue(2);
    }
  }

  @Nested
  @DisplayName("CAS-3 the bounds of a write")
  class Bounds {
    private final TestRing ring = ring(1, settings -> settings.retries(0));

    @Test
    @DisplayName("CAS-3 a server that takes nothing for gapTimeout has failed")
    void gap() {
      byte[] content = ring.contentOf(0, 20 << 20);
      ring.server(0).writes().always(CasScript.correct().stopAfter(2, CasEnd.silence()));
      CompletableFuture<@Nullable Throwable> end = end(ring.ring.write(content));
      until(
          "it has begun",
          () ->
              ring.server(0).writes().calls().size() == 1
                  && ring.server(0).writes().calls().get(0).requests() >= 2);
      Patience.until("it rests", () -> ring.ring.openCalls() == 1);
      for (int i = 0; i < 8; i++) {
        ring.pass(Duration.ofSeconds(1));
      }
      assertThat(end).isNotDone();
      ring.passUntilDone(end, Duration.ofMillis(250));
      stalled(end, "PT10S");
      ring.server(0).awaitOpenCalls(0);
    }

    private void stalled(CompletableFuture<@Nullable Throwable> end, String limit) {
      assertThat(end.join())
          .isInstanceOfSatisfying(
              StatusRuntimeException.class,
              e -> assertThat(code(e)).isEqualTo(Status.Code.DEADLINE_EXCEEDED))
          .hasMessageContaining(limit);
    }

    @Test
    @DisplayName("CAS-3 the answer has rpcTimeout, once all is sent")
    void answer() {
      byte[] content = ring.contentOf(0, 1000);
      ring.server(0).writes().always(CasScript.correct().stopAfter(1, CasEnd.silence()));
      CompletableFuture<@Nullable Throwable> end = end(ring.ring.write(content));
      CasCall call = ring.server(0).writes().awaitCall(1);
      until("all is sent", () -> call.requests() == 1);
      for (int i = 0; i < 27; i++) {
        ring.pass(Duration.ofSeconds(1));
      }
      assertThat(end).isNotDone();
      ring.passUntilDone(end, Duration.ofMillis(250));
      stalled(end, "PT30S");
    }

    @Test
    @DisplayName("CAS-3 the caller's deadline bounds all of it, and is no shard's failure")
    void deadline() {
      byte[] content = ring.contentOf(0, 10 * CHUNK);
      ring.server(0).writes().always(CasScript.correct().stopAfter(1, CasEnd.silence()));
      AtomicInteger begun = new AtomicInteger();
      AtomicInteger cancelled = new AtomicInteger();
      Flux<ByteBuffer> slow =
          Flux.concat(pieces(content, CHUNK).take(3), Flux.<ByteBuffer>never())
              .doOnSubscribe(s -> begun.incrementAndGet())
              .doOnCancel(cancelled::incrementAndGet);
      // on a busy machine the deadline of one may pass before it comes to its content
      until(
          "four have begun",
          () -> {
            assertThatThrownBy(
                    () ->
                        ring.ring
                            .write(Digest.of(content), slow)
                            .transform(Deadlines.within(Duration.ofMillis(100)))
                            .block(LONG))
                .isInstanceOf(DeadlineExceededException.class);
            return begun.get() >= 4;
          });
      ring.server(0).awaitOpenCalls(0);
      until("the content is cancelled", () -> cancelled.get() == begun.get());
      assertThat(ring.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-3 a cancel ends the upload at the server, and the content")
    void cancel() {
      AtomicInteger cancelled = new AtomicInteger();
      byte[] content = ring.contentOf(0, 10 * CHUNK);
      Flux<ByteBuffer> slow =
          Flux.concat(pieces(content, CHUNK).take(3), Flux.<ByteBuffer>never())
              .doOnCancel(cancelled::incrementAndGet);
      var running = ring.ring.write(Digest.of(content), slow).subscribe();
      CasCall call = ring.server(0).writes().awaitCall(1);
      until("pieces have come", () -> call.requests() > 0);
      running.dispose();
      assertThat(call.awaitEnd()).isEqualTo(CasCall.End.RESET_BY_CLIENT);
      assertThat(cancelled).hasValue(1);
      assertThat(ring.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }
  }
}
