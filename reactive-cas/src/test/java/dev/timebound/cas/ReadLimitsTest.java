package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.scheduler.Schedulers;

/** The ends of a read's time, where a clock that stands still would prove nothing. */
class ReadLimitsTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, s -> settings.apply(s.scheduler(Schedulers.parallel()).retries(0)));
  }

  @Test
  @DisplayName("CAS-30a empty messages after the last byte do not hold back the end")
  void keepAlivesAfterTheLast() {
    TestRing t = ring(1, settings -> settings);
    Digest digest = t.put(t.contentOf(0, 1000), 0);
    t.server(0)
        .reads()
        .next(
            CasScript.correct()
                .chunkSize(500)
                .stopAfter(2, CasEnd.keepAlives(Duration.ofMillis(10))));

    assertThat(end(t.ring.read(digest)).join()).isNull();
  }

  @Test
  @DisplayName("CAS-3 empty messages before the first byte are no answer: rpcTimeout holds")
  void keepAlivesBeforeTheFirst() {
    TestRing t = ring(1, settings -> settings.rpcTimeout(Duration.ofMillis(500)));
    Digest digest = t.put(0, 0);
    t.server(0)
        .reads()
        .next(CasScript.correct().stopAfter(0, CasEnd.keepAlives(Duration.ofMillis(10))));

    assertThat(failure(t.ring.read(digest)))
        .hasMessageContaining("nothing received within rpcTimeout, PT0.5S");
  }

  @Test
  @DisplayName("CAS-3 the error names the limit that passed: rpcTimeout")
  void rpcTimeoutNamed() {
    TestRing t = ring(1, settings -> settings.rpcTimeout(Duration.ofMillis(300)));
    Digest digest = t.put(0, 0);
    t.server(0).reads().always(CasScript.silence());
    t.server(0).capabilities().always(CasScript.silence());

    assertThat(failure(t.ring.read(digest).transform(Deadlines.within(LONG))))
        .hasMessage("DEADLINE_EXCEEDED: s0: nothing received within rpcTimeout, PT0.3S");
    assertThat(failure(t.ring.capabilities("s0")))
        .hasMessage("DEADLINE_EXCEEDED: s0: no answer within rpcTimeout, PT0.3S");
  }

  @Test
  @DisplayName("CAS-3a the error names the limit that passed: a share of the caller's deadline")
  void shareNamed() {
    TestRing t = ring(2, settings -> settings);
    Digest digest = t.put(0);
    t.server(0).findMissing().next(CasScript.silence());
    BlobPresence found =
        t.ring
            .findMissing(Set.of(digest))
            .transform(Deadlines.within(Duration.ofSeconds(4)))
            .block(LONG);
    assertThat(found).isNotNull();
    assertThat(found.unknown().get(digest))
        .hasMessageMatching(
            "DEADLINE_EXCEEDED: s0: no answer within its share of the deadline, \\d+ ms");
  }

  @Test
  @DisplayName("CAS-3a a limit that has passed before the call is begun is the shard's own")
  void passedBefore() {
    TestRing t = ring(2, settings -> settings.rpcTimeout(Duration.ofNanos(1)));

    assertThat(failure(t.ring.read(t.put(0, 0))))
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED))
        .hasMessageContaining("s0");
  }

  @Test
  @DisplayName("CAS-20a callers in a hurry make no shard suspect that is well")
  void hurry() {
    TestRing t = ring(3, settings -> settings);
    Digest digest = t.put(0, 0);
    t.servers.forEach(server -> server.reads().always(CasScript.silence()));
    for (int i = 0; i < 8; i++) {
      assertThatThrownBy(
              () ->
                  t.ring
                      .read(digest)
                      .transform(Deadlines.within(Duration.ofMillis(15)))
                      .blockLast(LONG))
          .isInstanceOf(DeadlineExceededException.class);
    }
    for (int shard = 0; shard < 3; shard++) {
      assertThat(t.status(shard)).isEqualTo(MemberStatus.HEALTHY);
    }
  }

  /** A ring whose clock is the callers' deadlines' too. */
  private TestRing oneClock() {
    TestRing made = rings.of(2, settings -> settings.retries(0));
    made.servers.forEach(
        server -> {
          server.reads().always(CasScript.silence());
          server.findMissing().always(CasScript.silence());
        });
    return made;
  }

  private static CompletableFuture<@Nullable Throwable> within(
      TestRing t, Duration budget, Flux<?> call) {
    Deadline deadline = Deadline.after(budget, t.time);
    return end(call.contextWrite(context -> Deadlines.put(context, deadline)));
  }

  @Test
  @DisplayName("CAS-20a less than 40 ms is not shared: its half says nothing of a shard")
  void notShared() {
    TestRing t = oneClock();
    Digest digest = t.put(0, 0);
    for (int i = 0; i < 4; i++) {
      var read = within(t, Duration.ofMillis(30), t.ring.read(digest));
      t.pass(Duration.ofMillis(16)); // on the servers' side the real clock's 30 ms may pass first
      Patience.rest();
      t.passUntilDone(read, Duration.ofMillis(1));
      assertThat(read.join()).isInstanceOf(DeadlineExceededException.class);
    }

    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    assertThat(t.reads(1)).isZero();
  }

  @Test
  @DisplayName("CAS-20a the caller's deadline, seen by the attempt itself, is no shard's failure")
  void callersDeadline() {
    TestRing t = oneClock();
    Digest digest = t.put(0, 0);
    for (int i = 0; i < 4; i++) {
      var read = within(t, Duration.ofMillis(30), t.ring.read(digest));
      t.passUntilDone(read, Duration.ofMillis(30));
      var check = within(t, Duration.ofMillis(30), t.ring.findMissing(Set.of(digest)).flux());
      t.passUntilDone(check, Duration.ofMillis(30));
      assertThat(read.join()).isInstanceOf(DeadlineExceededException.class);
      assertThat(check.join()).isInstanceOf(DeadlineExceededException.class);
    }

    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-20a what a call fails with after its deadline has ended it is no ERROR")
  void quiet() {
    TestRing t = ring(2, settings -> settings);
    Digest digest = t.put(0, 0);
    t.servers.forEach(server -> server.reads().always(CasScript.silence()));
    List<Throwable> dropped = new CopyOnWriteArrayList<>();
    Hooks.onErrorDropped(dropped::add);
    try {
      for (int i = 0; i < 300; i++) {
        Duration deadline = Duration.ofMillis(1 + i % 5);
        failure(t.ring.read(digest).transform(Deadlines.within(deadline)));
      }
      until("no call is open", () -> t.ring.openCalls() == 0);
    } finally {
      Hooks.resetOnErrorDropped();
    }
    assertThat(dropped).isEmpty();
  }

  @Test
  @DisplayName("CAS-33 a subscriber that throws leaves nothing open")
  void throwing() {
    TestRing t = ring(1, settings -> settings);
    Digest digest = t.put(t.contentOf(0, 1000), 0);
    t.server(0).reads().always(CasScript.correct().chunkSize(100));
    t.ring
        .read(digest)
        .subscribe(
            new CoreSubscriber<ByteBuffer>() {
              @Override
              public void onSubscribe(Subscription subscription) {
                subscription.request(1);
              }

              @Override
              public void onNext(ByteBuffer piece) {
                throw new IllegalStateException("not mine");
              }

              @Override
              public void onError(Throwable failure) {}

              @Override
              public void onComplete() {}
            });
    t.server(0).reads().awaitCall(1).awaitEnd();
    until("no claim is open", () -> t.ring.health().openClaims() == 0);
  }
}
