package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.FakeCalls.FakeCall;
import io.grpc.CallOptions;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;

/** Message, close, request and cancel meet on three threads, in many seeded ways. */
@DisplayName("GR-1 races of one call")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class CallRacesTest {
  private static final int ROUNDS = 2000;
  private static final int DUELS = 4000;
  private ExecutorService threads = Executors.newFixedThreadPool(3);

  @AfterAll
  void stop() throws InterruptedException {
    threads.shutdown();
    assertThat(threads.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  @DisplayName("GR-1 a stream: serial, in order, each message handed on or discarded, one end")
  void stream() throws Exception {
    for (int seed = 0; seed < ROUNDS; seed++) {
      streamRound(new Random(seed), "seed " + seed);
    }
  }

  private void streamRound(Random random, String seed) throws Exception {
    FakeCalls fake = new FakeCalls();
    CallAttempt attempt = CallAttempt.create();
    RecordingClaim<?> claim = RecordingClaim.on(attempt);
    List<byte[]> discarded = new CopyOnWriteArrayList<>();
    Probe<byte[]> probe = new Probe<>();
    boolean fromOnNext = random.nextBoolean();
    if (fromOnNext) {
      probe.onEach = p -> p.request(1);
    }
    Flux<byte[]> flux =
        GrpcCalls.serverStreaming(
            fake, STREAM, CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt), REQUEST);
    flux.doOnDiscard(byte[].class, discarded::add).subscribe(probe);
    FakeCall call = fake.only();

    int messages = random.nextInt(40);
    boolean cancels = random.nextInt(3) != 0;
    Status status = random.nextBoolean() ? Status.OK : Status.UNAVAILABLE;
    int[] pauses = pauses(random);
    int[] requests = random.ints(20, 1, 5).toArray();
    int[] sent = {0};
    together(
        () -> {
          // the transport gives no more than was asked for, and then the status
          long patience = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
          while (sent[0] < messages) {
            if (call.outstanding() > 0) {
              spin(pauses[0]);
              call.deliver(new byte[] {(byte) sent[0]++});
            } else if (call.cancels.get() > 0 || System.nanoTime() > patience) {
              break;
            } else {
              Thread.yield();
            }
          }
          call.close(call.cancels.get() > 0 ? Status.CANCELLED : status);
        },
        () -> {
          for (int n : requests) {
            spin(pauses[1]);
            probe.request(n);
          }
          probe.request(messages + 1);
        },
        () -> {
          if (cancels) {
            spin(pauses[2] * 8);
            probe.cancel();
          }
        });

    assertThat(probe.broken).as(seed).isEmpty();
    assertThat(claim.overlapped).as(seed).isFalse();
    assertThat(claim.waits).as(seed).isFalse();
    assertThat(numbers(probe.got)).as(seed).isSorted().doesNotHaveDuplicates();
    assertThat(probe.got.size() + discarded.size()).as(seed).isEqualTo(sent[0]);
    if (call.cancels.get() == 0) {
      assertThat(probe.isDone()).as(seed).isTrue();
      assertThat(probe.got).as(seed).hasSize(messages);
      assertThat(probe.completed).as(seed).isEqualTo(status.isOk());
    }
  }

  @Test
  @DisplayName("GR-1 a unary call: its answer is handed on or discarded, never both, never neither")
  void unary() throws Exception {
    for (int seed = 0; seed < ROUNDS; seed++) {
      Random random = new Random(seed);
      FakeCalls fake = new FakeCalls();
      List<byte[]> discarded = new CopyOnWriteArrayList<>();
      Probe<byte[]> probe = new Probe<>();
      GrpcCalls.unary(fake, UNARY, CallOptions.DEFAULT, REQUEST)
          .doOnDiscard(byte[].class, discarded::add)
          .subscribe(probe);
      FakeCall call = fake.only();
      int[] pauses = pauses(random);
      boolean cancels = random.nextInt(3) != 0;
      together(
          () -> {
            spin(pauses[0]);
            call.deliver(REQUEST);
            call.close(Status.OK);
          },
          () -> {
            spin(pauses[1]);
            probe.request(1);
          },
          () -> {
            if (cancels) {
              spin(pauses[2]);
              probe.cancel();
            }
          });
      assertThat(probe.broken).as("seed " + seed).isEmpty();
      assertThat(probe.got.size() + discarded.size()).as("seed " + seed).isEqualTo(1);
      assertThat(cancels || probe.completed).as("seed " + seed).isTrue();
    }
  }

  @Test
  @DisplayName("GR-1 a request meets a message while others are held: in order, one at a time")
  void requestMeetsMessage() throws Exception {
    for (int seed = 0; seed < DUELS; seed++) {
      Random random = new Random(seed);
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      GrpcCalls.serverStreaming(fake, STREAM, CallOptions.DEFAULT, REQUEST).subscribe(probe);
      FakeCall call = fake.only();
      probe.request(2);
      for (int i = 0; i < 4; i++) {
        call.deliver(new byte[] {(byte) i}); // two handed on, two held
      }
      probe.onEach = p -> spin(20);
      int[] pauses = pauses(random);
      duel(
          () -> {
            spin(pauses[0]);
            probe.request(10);
          },
          () -> {
            spin(pauses[1]);
            call.deliver(new byte[] {4});
            call.deliver(new byte[] {5});
          });
      assertThat(probe.broken).as("seed " + seed).isEmpty();
      assertThat(numbers(probe.got)).as("seed " + seed).containsExactly(0, 1, 2, 3, 4, 5);
    }
  }

  @Test
  @DisplayName("GR-1 a cancel meets a unary answer: it is discarded")
  void cancelMeetsAnswer() throws Exception {
    for (int seed = 0; seed < DUELS; seed++) {
      Random random = new Random(seed);
      FakeCalls fake = new FakeCalls();
      List<byte[]> discarded = new CopyOnWriteArrayList<>();
      Probe<byte[]> probe = new Probe<>();
      GrpcCalls.unary(fake, UNARY, CallOptions.DEFAULT, REQUEST)
          .doOnDiscard(byte[].class, discarded::add)
          .subscribe(probe);
      probe.request(1);
      FakeCall call = fake.only();
      int[] pauses = pauses(random);
      duel(
          () -> {
            spin(pauses[0]);
            probe.cancel();
          },
          () -> {
            spin(pauses[1]);
            call.deliver(REQUEST);
          });
      assertThat(discarded).as("seed " + seed).hasSize(1);
      assertThat(probe.got).as("seed " + seed).isEmpty();
    }
  }

  @Test
  @DisplayName("GR-1 a long stream, asked for one by one from another thread, stays in order")
  void oneByOneFromAnotherThread() throws Exception {
    int messages = 200_000;
    FakeCalls fake = new FakeCalls();
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger got = new AtomicInteger();
    AtomicInteger broken = new AtomicInteger();
    Counting subscriber = new Counting(inside, got, broken);
    GrpcCalls.serverStreaming(fake, STREAM, CallOptions.DEFAULT, REQUEST).subscribe(subscriber);
    FakeCall call = fake.only();
    duel(
        () -> {
          // a new request once the last one is served: what comes in meanwhile is held
          for (int asked = 0; asked < messages && broken.get() == 0; asked++) {
            for (int spins = 0; got.get() < asked && broken.get() == 0; spins++) {
              patience(spins);
            }
            subscriber.request(1);
          }
        },
        () -> {
          int spins = 0;
          for (int sent = 0; sent < messages && broken.get() == 0; ) {
            if (call.outstanding() > 0) {
              call.deliver(ByteBuffer.allocate(4).putInt(sent++).array());
              spins = 0;
            } else {
              patience(spins++);
            }
          }
        });
    assertThat(broken).hasValue(0);
    assertThat(got).hasValue(messages);
  }

  @Test
  @DisplayName(
      "GR-1 an upload: sent in order, each message sent or discarded, one end, no source left")
  void upload() throws Exception {
    Hooks.onErrorDropped(late -> {}); // the source's error may come after the call's end
    try {
      for (int seed = 0; seed < ROUNDS; seed++) {
        uploadRound(new Random(seed), "seed " + seed);
      }
    } finally {
      Hooks.resetOnErrorDropped();
    }
  }

  private void uploadRound(Random random, String seed) throws Exception {
    FakeCalls fake = new FakeCalls();
    CallAttempt attempt = CallAttempt.create();
    RecordingClaim<?> claim = RecordingClaim.on(attempt);
    List<byte[]> discarded = new CopyOnWriteArrayList<>();
    Probe<byte[]> probe = new Probe<>();
    HandSource source = new HandSource(random.nextInt(40));
    boolean fails = random.nextInt(4) == 0;
    Mono<byte[]> mono =
        GrpcCalls.clientStreaming(
            fake,
            BridgeServer.COLLECT,
            CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt),
            source);
    mono.doOnDiscard(byte[].class, discarded::add).subscribe(probe);
    probe.request(1);
    FakeCall call = fake.only();
    boolean cancels = random.nextInt(3) == 0;
    boolean endsEarly = random.nextInt(3) == 0;
    int[] takes = random.ints(10, 1, 4).toArray();
    int[] pauses = pauses(random);
    together(
        () -> source.run(pauses[0], fails),
        () -> {
          for (int n : takes) {
            spin(pauses[1]);
            call.ready(n);
          }
          if (!endsEarly) {
            call.ready(Integer.MAX_VALUE);
            long patience = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            while (!call.log.contains("halfClose")
                && call.cancels.get() == 0
                && System.nanoTime() < patience) {
              Thread.yield();
            }
          }
          if (call.cancels.get() > 0) {
            call.close(Status.CANCELLED);
          } else {
            call.deliver(REQUEST);
            call.close(endsEarly && fails ? Status.UNAVAILABLE : Status.OK);
          }
        },
        () -> {
          if (cancels) {
            spin(pauses[2] * 8);
            probe.cancel();
          }
        });

    assertThat(probe.broken).as(seed).isEmpty();
    assertThat(claim.overlapped).as(seed).isFalse();
    assertThat(claim.waits).as(seed).isFalse();
    assertThat(numbers(call.sent))
        .as(seed)
        .isEqualTo(java.util.stream.IntStream.range(0, call.sent.size()).boxed().toList());
    long kept = discarded.stream().filter(bytes -> bytes != REQUEST).count();
    assertThat(call.sent.size() + kept).as(seed).isEqualTo(source.given);
    assertThat(cancels || probe.isDone()).as(seed).isTrue();
    assertThat(source.ended || source.cancelled).as(seed).isTrue();
    if (probe.completed && !endsEarly) {
      assertThat(call.sent).as(seed).hasSize(source.messages);
    }
  }

  /** Gives what was asked for, on the thread that runs it. */
  private static final class HandSource
      implements org.reactivestreams.Publisher<byte[]>, Subscription {
    private final AtomicLong wanted = new AtomicLong();
    private final int messages;
    private volatile org.reactivestreams.@Nullable Subscriber<? super byte[]> subscriber;
    volatile boolean cancelled;
    boolean ended;
    int given;

    HandSource(int messages) {
      this.messages = messages;
    }

    @Override
    public void subscribe(org.reactivestreams.Subscriber<? super byte[]> s) {
      subscriber = s;
      s.onSubscribe(this);
    }

    void run(int pause, boolean fails) {
      var s = java.util.Objects.requireNonNull(subscriber);
      long patience = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (given < messages && !cancelled && System.nanoTime() < patience) {
        if (wanted.get() > given) {
          spin(pause);
          s.onNext(new byte[] {(byte) given++});
        } else {
          Thread.yield();
        }
      }
      if (cancelled) {
        return;
      }
      ended = true;
      if (fails) {
        s.onError(new IllegalStateException("source"));
      } else {
        s.onComplete();
      }
    }

    @Override
    public void request(long n) {
      wanted.addAndGet(n);
    }

    @Override
    public void cancel() {
      cancelled = true;
    }
  }

  private static final class Counting extends BaseSubscriber<byte[]> {
    private final AtomicInteger inside;
    private final AtomicInteger got;
    private final AtomicInteger broken;

    Counting(AtomicInteger inside, AtomicInteger got, AtomicInteger broken) {
      this.inside = inside;
      this.got = got;
      this.broken = broken;
    }

    @Override
    protected void hookOnSubscribe(Subscription subscription) {}

    @Override
    protected void hookOnNext(byte[] message) {
      boolean alone = inside.getAndIncrement() == 0;
      if (!alone || ByteBuffer.wrap(message).getInt() != got.get()) {
        broken.incrementAndGet();
      }
      inside.decrementAndGet();
      got.incrementAndGet();
    }
  }

  /** Both from the very same moment: this thread and one other, which spin until both are there. */
  private void duel(Runnable here, Runnable there) throws Exception {
    AtomicInteger ready = new AtomicInteger();
    CompletableFuture<Void> other =
        CompletableFuture.runAsync(
            () -> {
              meet(ready);
              there.run();
            },
            threads);
    meet(ready);
    here.run();
    other.get(60, TimeUnit.SECONDS);
  }

  private static void meet(AtomicInteger ready) {
    ready.incrementAndGet();
    for (int spins = 0; ready.get() < 2; spins++) {
      patience(spins);
    }
  }

  private static void patience(int spins) {
    if (spins < 10_000) {
      Thread.onSpinWait();
    } else {
      Thread.yield(); // the other one has no core yet
    }
  }

  private static List<Integer> numbers(List<byte[]> messages) {
    return messages.stream().map(message -> (int) message[0]).toList();
  }

  private static int[] pauses(Random random) {
    return new int[] {random.nextInt(60), random.nextInt(60), random.nextInt(60)};
  }

  private static void spin(int times) {
    for (int i = 0; i < times; i++) {
      Thread.onSpinWait();
    }
  }

  private void together(Runnable... sides) throws Exception {
    CyclicBarrier begin = new CyclicBarrier(sides.length);
    List<CompletableFuture<Void>> running = new ArrayList<>();
    for (Runnable side : sides) {
      running.add(
          CompletableFuture.runAsync(
              () -> {
                try {
                  begin.await();
                } catch (Exception e) {
                  throw new IllegalStateException(e);
                }
                side.run();
              },
              threads));
    }
    CompletableFuture.allOf(running.toArray(CompletableFuture[]::new)).get(60, TimeUnit.SECONDS);
  }
}
