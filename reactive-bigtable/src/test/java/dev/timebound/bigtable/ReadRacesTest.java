package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import dev.timebound.test.Rows;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

/**
 * Messages, errors, demand, a cancel and the ticks of the watch meet on four threads, in many
 * seeded ways. Time is compressed: every timer is due at once, so a gap is a few turns of a loop.
 * It stands still where the server's thread gets no CPU: else a read could use up its attempts, all
 * of them silent, before the server has had one turn.
 */
@DisplayName("BT-31 BT-35 races of one read")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ReadRacesTest {
  private static final int ROUNDS = 300;
  private static final int ROWS = 40;
  private static final long PATIENCE = TimeUnit.SECONDS.toNanos(20);

  private final ExecutorService threads = Executors.newFixedThreadPool(4);

  @AfterAll
  void stop() throws InterruptedException {
    threads.shutdown();
    assertThat(threads.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  @DisplayName("BT-31 BT-35 no row lost, none doubled, one end, and nothing left behind")
  void races() throws Exception {
    int completed = 0;
    int resumed = 0;
    for (int seed = 0; seed < ROUNDS; seed++) {
      Round round = new Round(new Random(seed));
      round.run("seed " + seed);
      completed += round.completed ? 1 : 0;
      resumed += round.server.calls.size() > 1 ? 1 : 0;
    }
    // They do what they are for.
    assertThat(completed).isGreaterThan(ROUNDS / 4);
    assertThat(resumed).isGreaterThan(ROUNDS / 4);
  }

  private final class Round implements CoreSubscriber<Row> {
    private final long seed;
    private final HastyScheduler time = new HastyScheduler();
    final Server server;
    private final ReadRowsCalls calls;
    private final boolean cancels;
    private final int cancelAfter;
    private final List<String> keys = new CopyOnWriteArrayList<>();
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicInteger ends = new AtomicInteger();
    private final AtomicLong wanted = new AtomicLong();
    private volatile @Nullable Subscription subscription;
    private volatile @Nullable String fault;
    volatile boolean completed;
    private volatile boolean over;

    Round(Random random) {
      seed = random.nextLong();
      cancels = random.nextInt(3) == 0;
      cancelAfter = random.nextInt(ROWS);
      server = new Server(new Random(seed));
      calls =
          new ReadRowsCalls(
              new BigtableSettings(
                  "p",
                  "i",
                  "",
                  Duration.ofMillis(10),
                  // Attempts in a row without a row are many here.
                  1000,
                  Duration.ofDays(1),
                  Duration.ofMillis(1),
                  Duration.ofMillis(2),
                  time),
              table -> server,
              CallOptions.DEFAULT,
              Runnable::run,
              BigtableMeters.of(null),
              BigtableObservations.of(null));
    }

    void run(String name) throws Exception {
      CyclicBarrier start = new CyclicBarrier(4);
      ReadRowsRequest request = Query.builder("t").build().toRequest("t", "");
      List<Future<?>> all = new ArrayList<>();
      all.add(
          threads.submit(
              () -> {
                start.await();
                ReadRowsFlux.of(calls, ObservedCall.READ_ROWS, request).subscribe(this);
                Random random = new Random(seed + 1);
                while (!isOver()) {
                  Subscription s = subscription;
                  if (s != null && !isOver()) {
                    int n = 1 + random.nextInt(5);
                    wanted.addAndGet(n);
                    s.request(n);
                  }
                  spin(random);
                }
                return null;
              }));
      all.add(
          threads.submit(
              () ->
                  loop(
                      start,
                      () -> {
                        server.step();
                        time.serverRuns();
                      },
                      2)));
      all.add(threads.submit(() -> loop(start, time::stepWithServer, 3)));
      all.add(
          threads.submit(
              () ->
                  loop(
                      start,
                      () -> {
                        Subscription s = subscription;
                        if (cancels && s != null && keys.size() >= cancelAfter) {
                          over = true;
                          s.cancel();
                        }
                      },
                      4)));
      long giveUp = System.nanoTime() + PATIENCE;
      for (Future<?> one : all) {
        one.get(Math.max(1, giveUp - System.nanoTime()), TimeUnit.NANOSECONDS);
      }
      assertThat(fault).as(name).isNull();
      assertThat(keys).as(name).containsExactly(Scripted.keys(0, keys.size()));
      assertThat(ends.get()).as(name).isLessThanOrEqualTo(1);
      if (!cancels) {
        assertThat(completed).as(name).isTrue();
      }
      if (completed) {
        assertThat(keys).as(name).hasSize(ROWS);
      }
      assertThat(server.calls).as(name).allMatch(call -> call.ended);
      assertThat(calls.watch().isIdle()).as(name).isTrue();
      // The timer's last tick finds nobody, and what a backoff left was disposed of.
      time.drain();
      assertThat(calls.watch().isTicking()).as(name).isFalse();
    }

    private @Nullable Void loop(CyclicBarrier start, Runnable step, int salt) throws Exception {
      start.await();
      Random random = new Random(seed + salt);
      while (!isOver()) {
        step.run();
        spin(random);
      }
      return null;
    }

    private boolean isOver() {
      return over || fault != null || Thread.currentThread().isInterrupted();
    }

    private void spin(Random random) {
      for (int i = random.nextInt(200); i > 0; i--) {
        Thread.onSpinWait();
      }
    }

    @Override
    public void onSubscribe(Subscription s) {
      subscription = s;
    }

    @Override
    public void onNext(Row row) {
      if (inside.getAndIncrement() != 0) {
        fault = "signals overlap";
      }
      keys.add(row.key().toStringUtf8());
      if (keys.size() > wanted.get()) {
        fault = "more rows than were asked for";
      }
      if (ends.get() != 0) {
        fault = "a row after the end";
      }
      inside.decrementAndGet();
    }

    @Override
    public void onError(Throwable t) {
      ends.incrementAndGet();
      fault = "error " + t;
      over = true;
    }

    @Override
    public void onComplete() {
      ends.incrementAndGet();
      completed = true;
      over = true;
    }
  }

  /** Answers each call from where it asks on, for as long as it likes. */
  private static final class Server extends Channel {
    final List<Call> calls = new CopyOnWriteArrayList<>();
    private final Random random;

    Server(Random random) {
      this.random = random;
    }

    void step() {
      for (Call call : calls) {
        call.step(random);
      }
    }

    @Override
    @SuppressWarnings("unchecked")
    public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
      return (ClientCall<Q, R>) new Call(this);
    }

    @Override
    public String authority() {
      return "fake";
    }
  }

  private static final class Call extends ClientCall<ReadRowsRequest, Message> {
    private final Server server;
    private final AtomicInteger asked = new AtomicInteger();
    private @Nullable Listener<Message> listener;
    private volatile boolean cancelled;
    volatile boolean ended;
    private int next;
    private int silentFor;

    Call(Server server) {
      this.server = server;
    }

    @Override
    public void start(Listener<Message> responses, Metadata headers) {
      listener = responses;
    }

    @Override
    public void request(int messages) {
      asked.addAndGet(messages);
    }

    @Override
    public void cancel(@Nullable String message, @Nullable Throwable cause) {
      cancelled = true;
      ended = true;
    }

    @Override
    public void halfClose() {
      server.calls.add(this);
    }

    @Override
    public void sendMessage(ReadRowsRequest request) {
      next =
          request.getRows().getRowRangesCount() == 0
              ? 0
              : Integer.parseInt(
                      request
                          .getRows()
                          .getRowRanges(0)
                          .getStartKeyOpen()
                          .toStringUtf8()
                          .substring(4))
                  + 1;
    }

    /** From the server's one thread. */
    void step(Random random) {
      Listener<Message> to = listener;
      if (ended || to == null || silentFor-- > 0) {
        return;
      }
      int dice = random.nextInt(20);
      if (dice == 0) {
        close(to, Status.UNAVAILABLE);
      } else if (dice == 1) {
        // Long enough for the compressed clock's gap timeout, mostly.
        silentFor = 2000;
      } else if (asked.get() > 0) {
        if (next >= ROWS) {
          close(to, Status.OK);
          return;
        }
        asked.decrementAndGet();
        int rows = Math.min(ROWS - next, random.nextInt(4));
        ReadRowsResponse message =
            rows == 0 && next > 0 && random.nextBoolean()
                ? Rows.message(List.of())
                : Rows.message(Scripted.keys(next, next + rows));
        next += rows;
        to.onMessage(MessageBytes.INSTANCE.parse(WireStream.of(message)));
      }
    }

    private void close(Listener<Message> to, Status status) {
      if (!cancelled) {
        ended = true;
        to.onClose(status, new Metadata());
      }
    }
  }

  /** Runs what is due at once: one thread turns it. */
  private static final class HastyScheduler implements Scheduler {
    private record Task(Runnable run, Disposable disposable) {}

    /** A gap or two, and far from all attempts. */
    private static final int STEPS_WITHOUT_SERVER = 500;

    private final Queue<Task> tasks = new ConcurrentLinkedQueue<>();
    private final AtomicInteger sinceServer = new AtomicInteger();

    void serverRuns() {
      sinceServer.set(0);
    }

    void stepWithServer() {
      if (sinceServer.getAndIncrement() < STEPS_WITHOUT_SERVER) {
        step();
      }
    }

    private void step() {
      Task task = tasks.poll();
      if (task != null && !task.disposable.isDisposed()) {
        task.run.run();
      }
    }

    void drain() {
      for (int i = 0; i < 10 && !tasks.isEmpty(); i++) {
        step();
      }
    }

    @Override
    public Disposable schedule(Runnable task) {
      Disposable disposable = Disposables.single();
      tasks.add(new Task(task, disposable));
      return disposable;
    }

    @Override
    public Disposable schedule(Runnable task, long delay, TimeUnit unit) {
      return schedule(task);
    }

    @Override
    public Worker createWorker() {
      throw new UnsupportedOperationException();
    }
  }
}
