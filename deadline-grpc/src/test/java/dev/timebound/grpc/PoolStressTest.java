package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.FailureKind;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

/**
 * Everything that can end a call, at one moment, many times over: its caller's start, request,
 * cancel and verdict, the transport's frames and close, a deadline, a quarantine, its channel's
 * leaving, the pool's close.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class PoolStressTest {
  private static final int SIDES = 4;
  private static final int CALLS = 6;

  private final ExecutorService threads = Executors.newFixedThreadPool(SIDES);
  private final AtomicInteger quarantined = new AtomicInteger();

  @AfterAll
  void stop() {
    threads.shutdown();
  }

  /** One call and what its listener heard. */
  private static final class Call extends ClientCall.Listener<byte[]> {
    final CallAttempt attempt;
    final ClientCall<byte[], byte[]> call;
    final AtomicInteger closes = new AtomicInteger();

    /** It was told to start, and did not throw. */
    volatile boolean started;

    Call(ChannelPool pool, Set<String> avoiding, boolean bounded) {
      attempt = CallAttempt.avoiding(avoiding);
      CallOptions options = CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt);
      call =
          pool.newCall(
              FakeChannel.METHOD,
              bounded ? options.withDeadline(Deadline.after(-1, TimeUnit.NANOSECONDS)) : options);
    }

    void start() {
      try {
        call.start(this, new Metadata());
        started = true;
        call.request(1);
      } catch (IllegalStateException cancelledBefore) {
        // its caller was faster
      }
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      closes.incrementAndGet();
    }
  }

  private static void quietly(Runnable step) {
    try {
      step.run();
    } catch (IllegalStateException notStarted) {
      // the other side is not there yet
    }
  }

  private static void transport(List<FakeChannel> fakes, Random random) {
    for (FakeChannel fake : fakes) {
      for (FakeChannel.FakeCall<?, ?> call : fake.calls) {
        quietly(
            () -> {
              switch (random.nextInt(5)) {
                case 0 -> call.headersSent();
                case 1 -> call.bytesCome();
                case 2 -> call.answer(Status.OK);
                case 3 -> call.close(Status.UNAVAILABLE);
                default -> call.close(Status.DEADLINE_EXCEEDED);
              }
            });
      }
    }
  }

  private static void caller(List<Call> calls, Random random) {
    for (Call call : calls) {
      quietly(
          () -> {
            switch (random.nextInt(4)) {
              case 0 -> call.call.cancel("by the stress", null);
              case 1 -> {
                if (call.attempt.failed(FailureKind.CONNECTION, null)) {
                  call.call.cancel("given up", null);
                }
              }
              case 2 -> call.attempt.waiting();
              default -> call.attempt.idle();
            }
          });
    }
  }

  /** The pool's own side: time, which brings the quarantine of the first channel, and changes. */
  private static void pool(ChannelPool pool, VirtualTimeScheduler time, Random random) {
    int what = random.nextInt(6);
    PooledChannel first = what == 0 ? pool.member("grpc-1") : null;
    if (first != null) {
      pool.group().remove(first).subscribe();
    }
    for (int i = 0; i < 5; i++) {
      time.advanceTimeBy(Duration.ofMillis(1));
    }
    if (what <= 1) {
      pool.close();
    }
  }

  private void round(long seed) throws Exception {
    Random random = new Random(seed);
    VirtualTimeScheduler time = VirtualTimeScheduler.create();
    List<FakeChannel> fakes = new CopyOnWriteArrayList<>();
    ChannelPoolBuilder builder =
        ChannelPool.builder(
                watch -> {
                  FakeChannel fake = new FakeChannel();
                  fake.closesLate = random.nextBoolean();
                  fakes.add(fake);
                  return fake;
                },
                (channel, headers) ->
                    Mono.error(Status.UNAVAILABLE.withDescription("gone").asRuntimeException()))
            .fixedChannels(2)
            .warming(false)
            .suspectAfter(Duration.ofMillis(10))
            .scheduler(time);
    if (random.nextInt(3) == 0) {
      builder.maxCancelsPerInterval(1, Duration.ofMillis(2));
    }
    ChannelPool pool = builder.build();
    List<Call> calls = new ArrayList<>();
    for (int i = 0; i < CALLS; i++) {
      calls.add(new Call(pool, Set.of(), random.nextInt(4) == 0));
    }
    // One waits on the first channel in vain, one receives on the second: a moment before 10 ms.
    Call stalled = new Call(pool, Set.of("grpc-2"), false);
    Call receiving = new Call(pool, Set.of("grpc-1"), false);
    stalled.start();
    receiving.start();
    fakes.get(0).lastCall().headersSent();
    fakes.get(1).lastCall().headersSent();
    stalled.attempt.waiting();
    for (int i = 0; i < 10; i++) {
      fakes.get(1).lastCall().bytesCome();
      time.advanceTimeBy(Duration.ofMillis(1));
    }
    CyclicBarrier barrier = new CyclicBarrier(SIDES);
    long[] seeds = random.longs(SIDES).toArray();
    List<Runnable> sides =
        List.of(
            () -> calls.forEach(Call::start),
            () -> caller(calls, new Random(seeds[1])),
            () -> transport(fakes, new Random(seeds[2])),
            () -> pool(pool, time, new Random(seeds[3])));
    List<Future<?>> done = new ArrayList<>();
    for (Runnable side : sides) {
      done.add(
          threads.submit(
              () -> {
                barrier.await();
                side.run();
                return null;
              }));
    }
    for (Future<?> future : done) {
      future.get(20, TimeUnit.SECONDS);
    }
    calls.add(stalled);
    calls.add(receiving);
    // No call is left behind: what the transport still carries counts, or waits for its reset.
    long carried =
        fakes.stream().flatMap(fake -> fake.calls.stream()).filter(call -> call.isOpen()).count();
    assertThat(carried)
        .as("open at the transport after round %s", seed)
        .isLessThanOrEqualTo(pool.inFlight() + pool.delayedCancels());
    // What is left is ended by the transport.
    fakes.forEach(fake -> fake.calls.forEach(call -> quietly(() -> call.close(Status.CANCELLED))));
    for (Call call : calls) {
      if (call.started) {
        BridgeServer.await("the close of a call in round " + seed, () -> call.closes.get() > 0);
      }
      assertThat(call.closes.get()).as("closes in round %s", seed).isLessThanOrEqualTo(1);
    }
    assertThat(pool.inFlight()).as("in flight after round %s", seed).isZero();
    assertThat(pool.group().openClaims()).as("claims after round %s", seed).isZero();
    quarantined.addAndGet((int) pool.quarantinedCalls());
    pool.close();
    fakes.forEach(FakeChannel::shutdown); // one that left the group by this test's hand
    assertThat(pool.isTerminated()).as("terminated after round %s", seed).isTrue();
    time.dispose();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  @DisplayName(
      "BT-1 BT-15 HE-12a whatever ends a call, at one moment: its claim ends once, counts return to 0, it is told once")
  void interleaved(int part) throws Exception {
    quarantined.set(0);
    for (int i = 0; i < 3_000; i++) {
      round(part * 1_000_000L + i);
    }
    assertThat(quarantined).as("calls ended by a quarantine").hasValueGreaterThan(300);
  }
}
