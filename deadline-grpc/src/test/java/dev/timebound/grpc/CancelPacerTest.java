package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.PoolFixture.TestCall;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.scheduler.VirtualTimeScheduler;

class CancelPacerTest {
  @Nested
  class Pace {
    private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
    private final CancelPacer pacer = new CancelPacer(3, Duration.ofSeconds(10).toNanos(), time);
    private final List<Integer> sent = new ArrayList<>();

    private void cancel(int number) {
      if (pacer.tryNow()) {
        sent.add(number);
      } else {
        pacer.later(() -> sent.add(number));
      }
    }

    @Test
    @DisplayName("BT-21a at most so many in any interval, the rest in order as there is room")
    void inOrder() {
      cancel(1);
      time.advanceTimeBy(Duration.ofSeconds(4));
      for (int i = 2; i <= 8; i++) {
        cancel(i);
      }
      assertThat(sent).containsExactly(1, 2, 3);
      assertThat(pacer.waiting()).isEqualTo(5);
      time.advanceTimeBy(Duration.ofSeconds(6));
      assertThat(sent).containsExactly(1, 2, 3, 4);
      time.advanceTimeBy(Duration.ofSeconds(4));
      assertThat(sent).containsExactly(1, 2, 3, 4, 5, 6);
      time.advanceTimeBy(Duration.ofSeconds(6));
      assertThat(sent).containsExactly(1, 2, 3, 4, 5, 6, 7);
      time.advanceTimeBy(Duration.ofSeconds(60));
      assertThat(sent).containsExactly(1, 2, 3, 4, 5, 6, 7, 8);
      assertThat(pacer.waiting()).isZero();
    }

    @Test
    @DisplayName("BT-21a one that ended meanwhile takes no place; one that nobody asked for does")
    void whatCounts() {
      pacer.sent();
      pacer.sent();
      cancel(1);
      pacer.later(() -> false);
      pacer.later(() -> false);
      cancel(2);
      assertThat(sent).containsExactly(1);
      time.advanceTimeBy(Duration.ofSeconds(10));
      assertThat(sent).containsExactly(1, 2);
      cancel(3);
      cancel(4);
      cancel(5);
      assertThat(sent).containsExactly(1, 2, 3, 4);
    }

    @Test
    @DisplayName("BT-21a once its connection is cut nothing waits, now or later")
    void cut() {
      AtomicInteger idle = new AtomicInteger();
      for (int i = 1; i <= 5; i++) {
        cancel(i);
      }
      pacer.whenIdle(idle::incrementAndGet);
      assertThat(idle).hasValue(0);
      pacer.close();
      assertThat(pacer.waiting()).isZero();
      assertThat(idle).hasValue(1);
      cancel(6);
      assertThat(pacer.waiting()).isZero();
      time.advanceTimeBy(Duration.ofMinutes(1));
      assertThat(sent).containsExactly(1, 2, 3);
    }

    @Test
    @DisplayName("BT-21a no interval of that length has more, however they come")
    void anyInterval() {
      Random random = new Random(7);
      List<Long> at = new ArrayList<>();
      long now = 0;
      for (int i = 0; i < 500; i++) {
        long[] clock = {now};
        if (pacer.tryNow()) {
          at.add(clock[0]);
        } else {
          pacer.later(() -> at.add(time.now(java.util.concurrent.TimeUnit.MILLISECONDS)));
        }
        int step = random.nextInt(2500);
        time.advanceTimeBy(Duration.ofMillis(step));
        now = time.now(java.util.concurrent.TimeUnit.MILLISECONDS);
      }
      assertThat(at).hasSizeGreaterThan(100);
      for (int i = 3; i < at.size(); i++) {
        assertThat(at.get(i) - at.get(i - 3)).isGreaterThanOrEqualTo(9_999);
      }
    }
  }

  @Nested
  class Calls {
    private final PoolFixture fixture =
        new PoolFixture(b -> b.fixedChannels(1).maxCancelsPerInterval(1, Duration.ofSeconds(10)));

    @AfterEach
    void nothingIsLeft() {
      fixture.close();
      assertThat(fixture.pool.inFlight()).isZero();
    }

    @Test
    @DisplayName("BT-21a a reset that a call's own deadline sent takes a place")
    void deadline() {
      fixture.call().sent().transport().close(Status.DEADLINE_EXCEEDED);
      TestCall call = fixture.call().sent();
      call.cancel();
      assertThat(call.transport().cancelled).isFalse();
      assertThat(fixture.pool.inFlight()).isZero();
      BridgeServer.await("its caller's end", () -> call.closed != null);
      assertThat(call.ended().getCode()).isEqualTo(Status.Code.CANCELLED);
      call.cancel();
      assertThat(fixture.pool.delayedCancels()).as("one call, one reset").isEqualTo(1);
      fixture.pass(Duration.ofSeconds(10));
      assertThat(call.transport().cancelled).isTrue();
      assertThat(call.closes).isEqualTo(1);
    }

    @Test
    @DisplayName(
        "BT-21a BT-6 a channel that leaves with resets to send is cut when the pool closes")
    void leavesWithResets() {
      PoolFixture pool =
          new PoolFixture(
              b ->
                  b.fixedChannels(1)
                      .refreshAfter(Duration.ofHours(1))
                      .maxCancelsPerInterval(1, Duration.ofHours(3)));
      pool.probes.answered();
      List<TestCall> calls = List.of(pool.call().sent(), pool.call().sent(), pool.call().sent());
      calls.forEach(TestCall::cancel);
      assertThat(pool.pool.delayedCancels()).isEqualTo(2);
      pool.pass(Duration.ofHours(2));
      FakeChannel old = pool.fakes.get(0);
      assertThat(old.shutdown).as("refreshed").isTrue();
      assertThat(old.shutdownNow).isFalse();
      assertThat(pool.pool.delayedCancels()).isEqualTo(2);
      pool.close();
      assertThat(old.shutdownNow).isTrue();
      assertThat(pool.pool.delayedCancels()).isZero();
    }

    @Test
    @DisplayName("BT-21a BT-6 a channel that leaves sends its resets, and is forgotten then")
    void leavesAndResets() {
      PoolFixture pool =
          new PoolFixture(
              b ->
                  b.fixedChannels(1)
                      .refreshAfter(Duration.ofHours(10))
                      .maxCancelsPerInterval(1, Duration.ofHours(6)));
      pool.probes.answered();
      List<TestCall> calls = List.of(pool.call().sent(), pool.call().sent(), pool.call().sent());
      calls.forEach(TestCall::cancel);
      pool.pass(Duration.ofHours(11));
      assertThat(pool.pool.delayedCancels()).isEqualTo(1);
      pool.pass(Duration.ofHours(2));
      assertThat(calls).allMatch(call -> call.transport().cancelled);
      pool.close();
      assertThat(pool.fakes.get(0).shutdownNow).as("it had gone by itself").isFalse();
    }

    @Test
    @DisplayName(
        "BT-21a a call that never went out, or has ended, needs no reset and takes no place")
    void noReset() {
      TestCall unsent = fixture.call();
      unsent.cancel();
      assertThat(unsent.transport().cancelled).isTrue();
      TestCall ended = fixture.call().sent();
      ended.transport().answer(Status.OK);
      ended.cancel();
      TestCall first = fixture.call().sent();
      first.cancel();
      assertThat(first.transport().cancelled).isTrue();
      TestCall waits = fixture.call().sent();
      waits.cancel();
      TestCall last = fixture.call().sent();
      last.cancel();
      waits.transport().answer(Status.OK);
      fixture.pass(Duration.ofSeconds(10));
      assertThat(waits.transport().cancelled).as("the server was faster").isFalse();
      assertThat(last.transport().cancelled).as("so the place was free").isTrue();
    }
  }

  @Test
  @DisplayName("BT-21a an end that comes while a message is handed on is told after it, once")
  void endsAmongMessages() {
    List<String> told = new ArrayList<>();
    List<Runnable> meanwhile = new ArrayList<>();
    EarlyEnd<Integer> end =
        new EarlyEnd<>(
            new ClientCall.Listener<>() {
              @Override
              public void onMessage(Integer message) {
                meanwhile.forEach(Runnable::run);
                told.add("message " + message);
              }

              @Override
              public void onClose(Status status, Metadata trailers) {
                told.add("closed " + status.getCode());
              }
            });
    end.onMessage(1);
    meanwhile.add(() -> end.end(Status.CANCELLED));
    end.onMessage(2);
    end.onMessage(3);
    end.onClose(Status.OK, new Metadata());
    assertThat(told).containsExactly("message 1", "message 2", "closed CANCELLED");
  }

  @Test
  @DisplayName("BT-21a what waits for its turn when the pool is closed holds no timer")
  void closedPool() {
    ScheduledThreadPoolExecutor timers = new ScheduledThreadPoolExecutor(1);
    timers.setRemoveOnCancelPolicy(true);
    Scheduler scheduler = Schedulers.fromExecutorService(timers);
    try {
      PoolFixture fixture =
          new PoolFixture(
              b ->
                  b.fixedChannels(2)
                      .maxCancelsPerInterval(1, Duration.ofDays(1))
                      .scheduler(scheduler));
      List<TestCall> calls = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        calls.add(fixture.call().sent());
      }
      calls.forEach(TestCall::cancel);
      assertThat(fixture.pool.delayedCancels()).isEqualTo(4);
      fixture.close();
      BridgeServer.await("no timer", () -> timers.getQueue().isEmpty());
      assertThat(calls).allSatisfy(call -> assertThat(call.closes).isEqualTo(1));
    } finally {
      scheduler.dispose();
      timers.shutdownNow();
    }
  }

  @Test
  @DisplayName(
      "BT-21a a listener that ends early hears one signal at a time and one close, whatever races")
  void earlyEndRaces() throws Exception {
    for (int round = 0; round < 3_000; round++) {
      AtomicInteger inside = new AtomicInteger();
      AtomicInteger closes = new AtomicInteger();
      AtomicInteger broken = new AtomicInteger();
      EarlyEnd<Integer> end =
          new EarlyEnd<>(
              new ClientCall.Listener<>() {
                private void signal() {
                  if (inside.getAndIncrement() != 0 || closes.get() > 0) {
                    broken.incrementAndGet();
                  }
                  inside.decrementAndGet();
                }

                @Override
                public void onMessage(Integer message) {
                  signal();
                }

                @Override
                public void onClose(Status status, Metadata trailers) {
                  signal();
                  closes.incrementAndGet();
                }
              });
      CyclicBarrier start = new CyclicBarrier(2);
      boolean remoteClose = round % 2 == 0;
      Thread transport =
          new Thread(
              () -> {
                await(start);
                for (int i = 0; i < 20; i++) {
                  end.onMessage(i);
                }
                if (remoteClose) {
                  end.onClose(Status.OK, new Metadata());
                }
              });
      transport.start();
      await(start);
      for (int spin = round % 97; spin > 0; spin--) {
        Thread.onSpinWait();
      }
      end.end(Status.CANCELLED);
      transport.join();
      assertThat(broken).hasValue(0);
      assertThat(closes).hasValue(1);
    }
  }

  private static void await(CyclicBarrier barrier) {
    try {
      barrier.await();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }
}
