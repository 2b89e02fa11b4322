package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.GAP;
import static dev.timebound.bigtable.Scripted.HOUR;
import static dev.timebound.bigtable.Scripted.letPass;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.Gate;
import dev.timebound.test.Rows;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedCall;
import dev.timebound.test.ScriptedCall.End;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.scheduler.Schedulers;

@DisplayName("BT-30 BT-33 BT-35 a read that waits in vain goes on elsewhere")
class ReadGapTest {

  /** As long as a gap timeout that fires wrongly would need, and more. */
  private static final Duration SEVERAL_GAPS = GAP.multipliedBy(4);

  private static void await(CountDownLatch latch) {
    try {
      // Only a failure reaches it: a machine may take long to get to the release.
      assertThat(latch.await(5, TimeUnit.MINUTES)).isTrue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Nested
  class Silence {
    @Test
    @DisplayName("BT-30 BT-35 before the headers: given up, penalised, read from another channel")
    void beforeHeaders() {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().next(Script.start()).always(Script.start().rows("a", "b").ok());
        Reader reader = reads.read();
        assertThat(reader.awaitComplete()).containsExactly("a", "b");
        // Not the one that came next: the penalty is 25 for 5 s.
        assertThat(reads.penalties()).containsExactly(25, 0);
        assertThat(reads.calls()).hasSize(2);
        ScriptedCall first = reads.calls().get(0);
        first.awaitEnd(End.RESET_BY_CLIENT);
        assertThat(reads.calls().get(1).connection()).isNotEqualTo(first.connection());
      }
    }

    @Test
    @DisplayName(
        "BT-30 between messages: what has come stands, the rest comes from another channel")
    void betweenMessages() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(Script.start().rows("a", "b").silence())
            .always(Script.start().rows("c").ok());
        assertThat(reads.read().awaitComplete()).containsExactly("a", "b", "c");
        assertThat(reads.penalties()).containsExactly(25, 0);
        ScriptedCall first = reads.calls().get(0);
        ScriptedCall second = reads.calls().get(1);
        first.awaitEnd(End.RESET_BY_CLIENT);
        assertThat(second.connection()).isNotEqualTo(first.connection());
        assertThat(second.readRows().getRows().getRowRanges(0).getStartKeyOpen().toStringUtf8())
            .isEqualTo("b");
      }
    }

    @Test
    @DisplayName("BT-35 the failed channel is avoided though it is the least loaded")
    void leastLoadedIsAvoided() {
      // Without penalties, which would lead elsewhere by themselves.
      try (Scripted reads =
          Scripted.start(
              settings -> settings.pool(pool -> pool.fixedChannels(2).penalties(false)))) {
        reads.server.readRows().always(Script.start());
        List<Reader> unread = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
          unread.add(reads.unread());
        }
        // All of one channel's go: it is the least loaded by 3.
        int free = reads.calls().get(0).connection();
        for (int i = 0; i < 6; i++) {
          if (reads.calls().get(i).connection() == free) {
            unread.get(i).cancel();
          }
        }
        reads.server.awaitOpenStreams(3);
        reads.server.readRows().next(Script.start()).always(Script.start().rows("a").ok());
        assertThat(reads.read().awaitComplete()).containsExactly("a");
        assertThat(reads.calls().get(6).connection()).isEqualTo(free);
        assertThat(reads.calls().get(7).connection()).isNotEqualTo(free);
        unread.forEach(Reader::cancel);
      }
    }

    @Test
    @DisplayName("BT-35 in a pool of one the retry stays on it")
    void poolOfOne() {
      try (Scripted reads =
          Scripted.start(settings -> settings.pool(pool -> pool.fixedChannels(1)))) {
        reads.server.readRows().next(Script.start()).always(Script.start().rows("a").ok());
        assertThat(reads.read().awaitComplete()).containsExactly("a");
        assertThat(reads.calls()).hasSize(2);
      }
    }

    @Test
    @DisplayName("BT-30 a read that a retry waits for, or that failed, leaves no timer")
    void cancelledInTheMiddle() {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().always(Script.start());
        Reader reader = reads.read();
        reads.server.readRows().awaitCall(2);
        reader.cancel();
        reads.server.awaitOpenStreams(0);
        eventually(() -> assertThat(reads.client.isIdle()).isTrue());
        assertThat(reads.calls()).hasSizeLessThanOrEqualTo(3);
      }
    }
  }

  @Nested
  @DisplayName("BT-30 no gap")
  class NoGap {
    @Test
    @DisplayName("BT-30 a consumer that asks for one row and then for nothing is no gap")
    void slowConsumer() {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().next(Script.start().rows("a").rows("b").rows("c").rows("d").ok());
        Reader reader = Reader.of(reads.all(), 1);
        reader.awaitRows(1);
        letPass(SEVERAL_GAPS);
        reader.request(1);
        reader.awaitRows(2);
        letPass(SEVERAL_GAPS);
        reader.request(Long.MAX_VALUE);
        assertThat(reader.awaitComplete()).containsExactly("a", "b", "c", "d");
        assertThat(reads.calls()).hasSize(1);
        assertThat(reads.penalties()).containsExactly(0, 0);
      }
    }

    @Test
    @DisplayName("BT-30 a consumer that blocks for longer than the gap timeout is no gap")
    void blockingConsumer() {
      CountDownLatch release = new CountDownLatch(1);
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().next(Scripted.rows(Script.start(), 0, 12, 2).ok());
        Reader reader =
            Reader.blocking(reads.all(), Schedulers.boundedElastic(), row -> await(release));
        reader.awaitRows(1);
        letPass(SEVERAL_GAPS);
        release.countDown();
        assertThat(reader.awaitComplete()).containsExactly(Scripted.keys(0, 12));
        assertThat(reads.calls()).hasSize(1);
        assertThat(reads.penalties()).containsExactly(0, 0);
      }
    }

    @Test
    @DisplayName("BT-30 another read's consumer that holds the last delivery thread is no gap")
    void starvedDelivery() throws InterruptedException {
      CountDownLatch release = new CountDownLatch(1);
      ExecutorService one = Executors.newSingleThreadExecutor();
      try (Scripted reads = Scripted.start(settings -> settings.deliverOn(one))) {
        reads
            .server
            .readRows()
            .next(Script.start().rows("a").ok())
            .always(Script.start().rows("b").ok());
        Reader blocking =
            Reader.blocking(reads.all(), Schedulers.fromExecutor(one), row -> await(release));
        blocking.awaitRows(1);
        Reader behind = reads.read();
        // Its rows are here, and wait for the one thread.
        reads.server.readRows().awaitCall(2).awaitEnd(End.COMPLETE);
        letPass(SEVERAL_GAPS);
        release.countDown();
        assertThat(behind.awaitComplete()).containsExactly("b");
        assertThat(blocking.awaitComplete()).containsExactly("a");
        assertThat(reads.calls()).hasSize(2);
        assertThat(reads.penalties()).containsExactly(0, 0);
      } finally {
        one.shutdown();
      }
      assertThat(one.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    @DisplayName("BT-13 a probe is answered though consumers hold every delivery thread")
    void probeNeedsNoDeliveryThread() throws InterruptedException {
      CountDownLatch release = new CountDownLatch(1);
      ExecutorService one = Executors.newSingleThreadExecutor();
      try (Scripted reads =
          Scripted.start(
              settings -> settings.deliverOn(one).pool(pool -> pool.warmTimeout(HOUR)))) {
        one.execute(() -> await(release));
        reads.client.pool().warm().block(Scripted.BOUND);
        release.countDown();
      } finally {
        release.countDown();
        one.shutdown();
      }
      assertThat(one.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    @DisplayName("BT-30 delivery that is always late puts the gap off, and not for ever")
    void alwaysLateDelivery() throws InterruptedException {
      ScheduledExecutorService late = Executors.newSingleThreadScheduledExecutor();
      try (Scripted reads =
          Scripted.start(
              settings ->
                  settings.deliverOn(
                      task -> late.schedule(task, GAP.toMillis(), TimeUnit.MILLISECONDS)))) {
        reads
            .server
            .readRows()
            .next(Script.start().rows("a").silence())
            .always(Script.start().rows("b").ok());
        assertThat(reads.read().awaitComplete()).containsExactly("a", "b");
        assertThat(reads.penalties()).containsExactly(25, 0);
      } finally {
        late.shutdown();
      }
      assertThat(late.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    @DisplayName("BT-30 a large row that trickles in is no gap")
    void trickle() {
      try (ScriptedBigtable server = ScriptedBigtable.start();
          FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());
          Scripted reads =
              new Scripted(server, proxy.port(), settings -> settings.streamWindowBytes(1 << 20))) {
        ByteString value = ByteString.copyFrom(new byte[300_000]);
        server.readRows().next(Script.start().message(Rows.message(Rows.row("big", value))).ok());
        proxy.trickle(150_000);
        Reader reader = reads.read();
        // About 2 s, in which no whole message comes.
        assertThat(reader.awaitComplete()).containsExactly("big");
        assertThat(reads.calls()).hasSize(1);
        proxy.heal();
      }
    }
  }

  @Nested
  class Attempts {
    @Test
    @DisplayName("BT-33 the third attempt has no gap timeout: however slow, it completes")
    void lastIsPatient() {
      Gate slow = new Gate();
      try (Scripted reads = Scripted.start()) {
        // A filter so sparse that the server sends its headers and then nothing, though it works.
        reads
            .server
            .readRows()
            .next(
                Script.start().headers(),
                Script.start().headers(),
                Script.start().headers().hold(slow).rows("a").ok());
        Reader reader = reads.read();
        ScriptedCall third = reads.server.readRows().awaitCall(3);
        letPass(SEVERAL_GAPS);
        assertThat(third.end()).isEqualTo(End.OPEN);
        assertThat(reader.isOver()).isFalse();
        slow.open();
        assertThat(reader.awaitComplete()).containsExactly("a");
        assertThat(reads.calls()).hasSize(3);
      }
    }

    @Test
    @DisplayName("BT-33 scan markers keep a sparse read going, in one attempt")
    void markersAreProgress() {
      try (Scripted reads = Scripted.start()) {
        Script script = Script.start().headers();
        for (int i = 0; i < 20; i++) {
          script = script.pause(GAP.dividedBy(5)).marker(Scripted.key(i));
        }
        reads.server.readRows().next(script.rows("z").ok());
        assertThat(reads.read().awaitComplete()).containsExactly("z");
        assertThat(reads.calls()).hasSize(1);
      }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName(
        "BT-33 progress gives the attempts back: a fault every few rows, more than 3 in all")
    void progressGivesAttemptsBack(boolean byRows) {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .answer(
                call -> {
                  int from = Scripted.from(call);
                  if (from == 20) {
                    return Script.start().rows("z").ok();
                  }
                  Script script =
                      byRows
                          ? Scripted.rows(Script.start(), from, from + 2, 1)
                          : Script.start()
                              .marker(Scripted.key(from))
                              .marker(Scripted.key(from + 1));
                  // Every other fault is a silence.
                  return from % 4 == 0 ? script.status(Status.UNAVAILABLE) : script.silence();
                });
        List<String> expected = new ArrayList<>();
        if (byRows) {
          expected.addAll(List.of(Scripted.keys(0, 20)));
        }
        expected.add("z");
        assertThat(reads.read().awaitComplete()).isEqualTo(expected);
        assertThat(reads.calls()).hasSize(11);
      }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("BT-33 progress arms the gap timeout again in the last attempt")
    void progressArmsAgain(boolean byRow) {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(
                Script.start(),
                Script.start(),
                byRow ? Script.start().rows("a").silence() : Script.start().marker("a").silence())
            .always(Script.start().rows("b").ok());
        assertThat(reads.read().awaitComplete())
            .isEqualTo(byRow ? List.of("a", "b") : List.of("b"));
        assertThat(reads.calls()).hasSize(4);
        assertThat(
                reads.requests().get(3).getRows().getRowRanges(0).getStartKeyOpen().toStringUtf8())
            .isEqualTo("a");
      }
    }

    @Test
    @DisplayName("BT-33 maxAttempts of 1: no gap timeout, before a row or after one")
    void oneAttemptIsPatient() {
      Gate first = new Gate();
      Gate second = new Gate();
      try (Scripted reads = Scripted.start(settings -> settings.maxAttempts(1))) {
        reads
            .server
            .readRows()
            .next(Script.start().hold(first).rows("a").hold(second).rows("b").ok());
        Reader reader = reads.read();
        first.awaitHeld(1);
        letPass(SEVERAL_GAPS);
        first.open();
        reader.awaitRows(1);
        letPass(SEVERAL_GAPS);
        second.open();
        assertThat(reader.awaitComplete()).containsExactly("a", "b");
        assertThat(reads.calls()).hasSize(1);
      }
    }

    @Test
    @DisplayName("BT-33 maxAttempts of 1: no retry")
    void oneAttemptFails() {
      try (Scripted reads = Scripted.start(settings -> settings.maxAttempts(1))) {
        reads.server.readRows().always(Script.start().status(Status.UNAVAILABLE));
        assertThat(reads.read().awaitError()).isInstanceOf(StatusRuntimeException.class);
        assertThat(reads.calls()).hasSize(1);
      }
    }

    @Test
    @DisplayName("BT-33 the attempts are counted: the third failure in a row is the read's")
    void threeInARow() {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().always(Script.start().status(Status.UNAVAILABLE));
        assertThat(Status.fromThrowable(reads.read().awaitError()).getCode())
            .isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(reads.calls()).hasSize(3);
      }
    }
  }

  @Nested
  @DisplayName("headersTimeout")
  class Headers {
    private Scripted start(int attempts) {
      return Scripted.start(
          settings -> settings.gapTimeout(HOUR).headersTimeout(GAP).maxAttempts(attempts));
    }

    @Test
    @DisplayName(
        "BT-34 no headers for headersTimeout: DEADLINE_EXCEEDED, retried as such elsewhere")
    void retried() {
      try (Scripted reads = start(3)) {
        reads.server.readRows().next(Script.start()).always(Script.start().rows("a").ok());
        assertThat(reads.read().awaitComplete()).containsExactly("a");
        assertThat(reads.calls()).hasSize(2);
        reads.calls().get(0).awaitEnd(End.RESET_BY_CLIENT);
        assertThat(reads.calls().get(1).connection())
            .isNotEqualTo(reads.calls().get(0).connection());
        assertThat(reads.penalties()).containsExactly(25, 0);
      }
    }

    @Test
    @DisplayName("BT-33 it bounds the last attempt too, and says so")
    void lastAttempt() {
      try (Scripted reads = start(1)) {
        reads.server.readRows().always(Script.start());
        Status status = Status.fromThrowable(reads.read().awaitError());
        assertThat(status.getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
        assertThat(status.getDescription()).contains("no headers for PT1S").contains("bigtable-");
      }
    }

    @Test
    @DisplayName(
        "BT-37 it ends an attempt that nobody reads as well, and the retry waits for demand")
    void unread() {
      try (Scripted reads = start(3)) {
        reads.server.readRows().next(Script.start()).always(Script.start().rows("a").ok());
        Reader reader = reads.unread();
        reads.calls().get(0).awaitEnd(End.RESET_BY_CLIENT);
        letPass(GAP);
        assertThat(reads.calls()).hasSize(1);
        reader.request(1);
        assertThat(reader.awaitComplete()).containsExactly("a");
      }
    }

    @Test
    @DisplayName("it ends with the headers: a silence after them is the gap timeout's")
    void headersEndIt() {
      Gate slow = new Gate();
      try (Scripted reads = start(3)) {
        reads.server.readRows().next(Script.start().headers().hold(slow).rows("a").ok());
        Reader reader = reads.read();
        slow.awaitHeld(1);
        letPass(SEVERAL_GAPS);
        slow.open();
        assertThat(reader.awaitComplete()).containsExactly("a");
        assertThat(reads.calls()).hasSize(1);
      }
    }
  }
}
