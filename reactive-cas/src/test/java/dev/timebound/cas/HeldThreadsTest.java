package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasMethod;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.health.MemberStatus;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Subscribers that block hold every thread that things are delivered on. */
@DisplayName("CAS-20a CAS-3 threads that are held")
class HeldThreadsTest {
  /** So that only the time in which something waits here can end it. */
  private static final Duration GAP = Duration.ofHours(9);

  private static final String THREAD = "waited for a thread of deliverOn";

  private final CountDownLatch held = new CountDownLatch(1);
  private final ExecutorService one = Executors.newSingleThreadExecutor();
  private final TestRing t =
      TestRing.of(1, settings -> settings.deliverOn(one).retries(0).gapTimeout(GAP));
  private final Digest digest = t.put(0, 0);

  @AfterEach
  void close() {
    held.countDown();
    t.close();
    one.shutdown();
  }

  private void hold() {
    CountDownLatch begun = new CountDownLatch(1);
    one.execute(
        () -> {
          begun.countDown();
          try {
            held.await();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        });
    until("the thread is held", () -> begun.getCount() == 0);
  }

  private void answered(CasMethod method) {
    until(
        "it is answered",
        () ->
            t.server(0).calls().stream()
                    .filter(c -> c.method() == method)
                    .anyMatch(HeldThreadsTest::ended)
                && t.ring.shards().all().get(0).connection().streams() == 0);
  }

  private static boolean ended(CasCall call) {
    return call.end() != CasCall.End.OPEN;
  }

  private void blamesNobody(CompletableFuture<@Nullable Throwable> end) {
    assertThat(end.join()).hasMessageContaining("DEADLINE_EXCEEDED").hasMessageContaining(THREAD);
    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-20a an answer that waits here for a thread blames nobody")
  void unary() {
    hold();
    for (int i = 0; i < 4; i++) {
      var found = t.ring.findMissing(Set.of(digest)).toFuture();
      answered(CasMethod.FIND_MISSING);
      t.pass(Duration.ofSeconds(30));
      until("it has ended", found::isDone);

      assertThat(found.join().unknown().values())
          .singleElement()
          .satisfies(why -> assertThat(why).hasMessageContaining(THREAD));
    }
    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-3 the limit of a read holds where no thread is to be had, and blames nobody")
  void read() {
    hold();
    for (int i = 0; i < 4; i++) {
      CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
      answered(CasMethod.READ);
      t.pass(Duration.ofSeconds(30));
      assertThat(end).isNotDone();
      t.passUntilDone(end, Duration.ofSeconds(1));
      blamesNobody(end);
    }
  }

  @Test
  @DisplayName(
      "CAS-3 CAS-20a so it does where the server says nothing: who could tell that it did?")
  void silent() {
    t.server(0).reads().always(CasScript.silence());
    hold();
    CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
    t.server(0).reads().awaitCall(1);
    t.pass(Duration.ofSeconds(30));
    t.passUntilDone(end, Duration.ofSeconds(1));
    blamesNobody(end);
  }

  @Test
  @DisplayName("CAS-3 so does the limit of a read's next piece")
  void piece() {
    Digest large = t.put(t.contentOf(0, 1000), 0);
    t.server(0).reads().next(CasScript.correct().chunkSize(10));
    Taker taker = new Taker();
    t.ring.read(large).subscribe(taker);
    taker.request(1);
    until("it has its piece", () -> taker.pieces.size() == 1);
    hold();
    taker.request(99); // more than is at hand already
    t.pass(GAP);
    t.passUntilDone(taker.end, Duration.ofSeconds(1));

    blamesNobody(taker.end);
    assertThat(taker.pieces).hasSizeLessThan(100);
  }

  @Test
  @DisplayName(
      "CAS-3 CAS-20a a write that waits here for a thread ends by its limit and blames nobody")
  void write() {
    byte[] content = t.contentOf(0, 10);
    assertThat(t.ring.write(content).block(Patience.LONG)).isNotNull();
    hold();
    for (int i = 0; i < 4; i++) {
      int before = t.server(0).writes().calls().size();
      CompletableFuture<@Nullable Throwable> end = end(t.ring.write(content));
      until(
          "it has a stream, or has had it",
          () -> t.server(0).openCalls() == 1 || t.server(0).writes().calls().size() > before);
      t.passUntilDone(end, Duration.ofMillis(50)); // the answer comes in meanwhile
      blamesNobody(end);
      t.server(0).awaitOpenCalls(0);
    }
  }

  @Test
  @DisplayName("CAS-2 a connection that stands is one, though no thread was there to tell of it")
  void connects() {
    hold();
    CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", t.server(0).hostAndPort())));
    try (CasRing ring =
        CasRing.builder(config).name("other").scheduler(t.time).deliverOn(one).build()) {
      var read = ring.readAll(digest).toFuture();
      until("it is connected", () -> t.server(0).openConnections() == 2);
      Patience.rest();

      t.pass(Duration.ofSeconds(5));
      assertThat(read).isNotDone();
      assertThat(ring.openCalls()).isEqualTo(1);
      held.countDown();

      assertThat(read.join()).hasSize(100);
    }
  }

  @Test
  @DisplayName("CAS-3 a frozen server is blamed as ever where there are threads")
  void frozen() {
    t.server(0).reads().always(CasScript.silence());
    for (int i = 0; i < 3; i++) {
      CompletableFuture<@Nullable Throwable> end = end(t.ring.read(digest));
      t.server(0).reads().awaitCall(i + 1);
      t.pass(Duration.ofSeconds(30));
      assertThat(end.join()).hasMessageContaining("nothing received within rpcTimeout, PT30S");
    }
    assertThat(t.status(0)).isEqualTo(MemberStatus.QUARANTINED);
  }
}
