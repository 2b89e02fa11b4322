package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.protobuf.ByteString;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.CallAttempt;
import dev.timebound.health.FailureKind;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * One read: attempts one after the other, the rows of each merged and delivered on demand, the next
 * one resumed after the last row delivered.
 *
 * <p>Everything that changes the read happens in {@link #drain}'s loop, one thread at a time:
 * signals of the attempt in hand, demand, cancel and timers only leave a mark and call it. A
 * message is asked of the attempt only when downstream wants a row and none is at hand, so that the
 * bridge's "a message is wanted and none is there" means that a caller waits. (BT-11, BT-37)
 */
final class ReadRowsSubscription implements Subscription, RowSink, ReadWatch.Watched {
  private static final AtomicIntegerFieldUpdater<ReadRowsSubscription> WIP =
      AtomicIntegerFieldUpdater.newUpdater(ReadRowsSubscription.class, "wip");
  private static final AtomicLongFieldUpdater<ReadRowsSubscription> REQUESTED =
      AtomicLongFieldUpdater.newUpdater(ReadRowsSubscription.class, "requested");

  private final ReadRowsCalls calls;
  private final CoreSubscriber<? super Row> actual;
  private final Deadline deadline;
  private final ReadProgress progress;
  private final boolean reversed;
  private final long beganAt;

  @SuppressWarnings("unused") // by WIP
  private volatile int wip;

  private volatile long requested;
  private volatile boolean cancelled;
  private volatile boolean backoffOver;

  /**
   * The attempt in hand; null before the first, while a retry waits, and at the end. Written by the
   * loop.
   */
  private volatile @Nullable Attempt attempt;

  // --- the loop's own

  private final List<Row> rows = new ArrayList<>();
  private int nextRow;
  private long emitted;
  private boolean ended;

  /** Set by the message under way: a row or a scan marker came in. */
  private boolean advanced;

  /** What the next attempt asks for. */
  private @Nullable ReadRowsRequest next;

  /** Attempts since the last progress, the one in hand included. */
  private int attempts;

  private int attemptsInAll;
  private final Set<String> avoid = new HashSet<>();
  private volatile @Nullable Disposable backoff;

  /** The failure to retry after, once somebody wants a row. */
  private @Nullable Throwable parked;

  private @Nullable Duration parkedDelay;

  ReadRowsSubscription(
      ReadRowsCalls calls, ReadRowsRequest request, CoreSubscriber<? super Row> actual) {
    this.calls = calls;
    this.actual = actual;
    this.deadline = Deadlines.current(actual.currentContext());
    this.progress = new ReadProgress(request);
    this.reversed = request.getReversed();
    this.next = request;
    this.beganAt = calls.now();
  }

  void begin() {
    backoffOver = true;
    calls.watch().add(this);
    drain();
  }

  @Override
  public void request(long n) {
    if (Operators.validate(n)) {
      Operators.addCap(REQUESTED, this, n);
      drain();
    }
  }

  @Override
  public void cancel() {
    cancelled = true;
    drain();
  }

  private void drain() {
    if (WIP.getAndIncrement(this) != 0) {
      return;
    }
    int missed = 1;
    do {
      if (!ended) {
        if (cancelled) {
          end("cancelled");
        } else {
          run();
        }
      }
      missed = WIP.addAndGet(this, -missed);
    } while (missed != 0);
  }

  /** One pass: as far as rows, demand and signals at hand allow. */
  private void run() {
    for (; ; ) {
      emit();
      if (cancelled || nextRow < rows.size()) {
        return;
      }
      Attempt a = attempt;
      if (a == null) {
        if (parked != null && emitted != requested) {
          scheduleRetry();
        }
        if (backoffOver) {
          backoffOver = false;
          startAttempt();
          continue;
        }
        return;
      }
      boolean done = a.done;
      byte[] message = a.message;
      if (message != null) {
        a.message = null;
        a.wait = 0;
        merge(a, message);
      } else if (done) {
        if (!terminated(a, a.error)) {
          return;
        }
      } else if (a.isOverdue()) {
        RuntimeException cause = a.overdue();
        // The verdict first: the cancel that follows says nothing of the channel. (BT-30, BT-35)
        a.callAttempt.failed(FailureKind.CONNECTION, cause);
        a.cancel();
        if (!terminated(a, cause)) {
          return;
        }
      } else if (emitted != requested && a.wait == 0) {
        a.wait = ++a.waits;
        a.request();
        // What a request brings at once is seen by the next pass.
        return;
      } else {
        return;
      }
      if (ended) {
        return;
      }
    }
  }

  private void emit() {
    long r = requested;
    while (nextRow < rows.size() && emitted != r && !cancelled) {
      Row row = rows.get(nextRow++);
      emitted++;
      progress.delivered(row.key());
      actual.onNext(row);
      if (emitted == r) {
        r = requested;
      }
    }
    if (nextRow == rows.size() && nextRow != 0) {
      rows.clear();
      nextRow = 0;
    }
  }

  private void merge(Attempt a, byte[] message) {
    advanced = false;
    try {
      a.merger.push(message, this);
    } catch (InvalidChunkStreamException e) {
      // The rows that were whole before the fault are delivered first.
      a.cancel();
      a.error = e;
      a.done = true;
    }
    if (advanced) {
      attempts = 1;
      avoid.clear();
      a.gapArmed = calls.settings().retries();
    }
  }

  @Override
  public void row(Row row) {
    rows.add(row);
    progress.received();
    advanced = true;
  }

  @Override
  public void scanned(ByteString key) {
    progress.scanned(key);
    advanced = true;
  }

  /** The attempt is over. True where the loop goes on. */
  private boolean terminated(Attempt a, @Nullable Throwable failure) {
    attempt = null;
    deadline.charge("bigtable.read-rows attempt " + a.number, a.elapsed());
    if (failure == null) {
      try {
        a.merger.end();
      } catch (InvalidChunkStreamException e) {
        fail(e);
        return false;
      }
      complete();
      return false;
    }
    String channel = a.callAttempt.channel();
    if (channel != null) {
      avoid.add(channel);
    }
    next = progress.next();
    if (next == null) {
      // All that was asked for has been delivered: only the goodbye was lost. (BT-32)
      complete();
      return false;
    }
    BigtableStatuses.Verdict verdict =
        BigtableStatuses.of(failure, a.endedBy(), a.callAttempt.isSent());
    if (verdict == null || !verdict.retryable() || attempts >= calls.settings().maxAttempts()) {
      fail(failure);
      return false;
    }
    calls.meters().resumed(verdict.line().name().toLowerCase(Locale.ROOT));
    parked = failure;
    parkedDelay = verdict.retryDelay();
    return true;
  }

  /** Only now that a row is wanted: a stream nobody reads sends no retries. */
  private void scheduleRetry() {
    Throwable failure = Objects.requireNonNull(parked);
    Duration asked = parkedDelay;
    parked = null;
    parkedDelay = null;
    long delay = Math.max(calls.backoffNanos(attempts), asked == null ? 0 : asked.toNanos());
    if (deadline.remainingNanos() <= delay) {
      // No attempt could start before the deadline. (BT-36)
      fail(failure);
      return;
    }
    backoff =
        calls
            .settings()
            .scheduler()
            .schedule(
                () -> {
                  backoffOver = true;
                  drain();
                },
                delay,
                TimeUnit.NANOSECONDS);
  }

  private void startAttempt() {
    ReadRowsRequest request = next;
    if (request == null) {
      throw new IllegalStateException("an attempt with nothing left to read");
    }
    backoff = null;
    attempts++;
    attemptsInAll++;
    Attempt a = new Attempt(attemptsInAll);
    // The last attempt has none, so that a read slow on the server still completes. (BT-33)
    a.gapArmed = attempts < calls.settings().maxAttempts();
    attempt = a;
    calls.call(request, a.callAttempt).subscribe(a);
  }

  private void complete() {
    end("ok");
    actual.onComplete();
  }

  private void fail(Throwable failure) {
    end(BigtableMeters.outcome(failure));
    actual.onError(failure);
  }

  /** Leaves nothing behind: no call, no timer, no row. */
  private void end(String outcome) {
    ended = true;
    calls.meters().ended(outcome, attemptsInAll, calls.now() - beganAt);
    calls.watch().remove(this);
    Attempt a = attempt;
    attempt = null;
    if (a != null) {
      a.cancel();
    }
    Disposable timer = backoff;
    if (timer != null) {
      timer.dispose();
    }
    for (; nextRow < rows.size(); nextRow++) {
      Operators.onDiscard(rows.get(nextRow), actual.currentContext());
    }
    rows.clear();
    nextRow = 0;
  }

  @Override
  public void tick() {
    Attempt a = attempt;
    if (a != null && a.tick()) {
      drain();
    }
  }

  /** One call to the server. */
  private final class Attempt implements CoreSubscriber<byte[]> {
    private static final int HEADERS = -1;

    final int number;
    final CallAttempt callAttempt = CallAttempt.avoiding(avoid);
    final RowMerger merger = new RowMerger(reversed, progress.resumePoint());
    private final long startedAt = calls.now();
    private @Nullable Subscription upstream;

    /** At most one: the next is asked for when it has been merged and its rows delivered. */
    volatile byte @Nullable [] message;

    volatile @Nullable Throwable error;
    volatile boolean done;

    /** What the tick found overdue: a wait's number, or the headers. */
    private volatile int due;

    private boolean overdue;

    /** Number of the wait under way, 0 when the caller does not wait. Written by the loop. */
    volatile int wait;

    int waits;
    volatile boolean gapArmed;

    // --- the tick's own
    private int seenWait;
    private long seenReceived = -1;
    private int idleTicks;
    private int headerTicks;

    Attempt(int number) {
      this.number = number;
    }

    @Override
    public Context currentContext() {
      return actual.currentContext();
    }

    @Override
    public void onSubscribe(Subscription s) {
      upstream = s;
    }

    @Override
    public void onNext(byte[] response) {
      message = response;
      drain();
    }

    @Override
    public void onError(Throwable e) {
      error = e;
      done = true;
      drain();
    }

    @Override
    public void onComplete() {
      done = true;
      drain();
    }

    void request() {
      Subscription s = upstream;
      if (s != null) {
        s.request(1);
      }
    }

    void cancel() {
      Subscription s = upstream;
      if (s != null) {
        s.cancel();
      }
    }

    long elapsed() {
      return calls.now() - startedAt;
    }

    /** True where something is overdue. */
    boolean tick() {
      long received = callAttempt.received();
      if (received == 0 && ++headerTicks > calls.headersTicks()) {
        due = HEADERS;
        return true;
      }
      int w = wait;
      if (w == 0 || !gapArmed || w != seenWait || received != seenReceived) {
        seenWait = w;
        seenReceived = received;
        idleTicks = 0;
        return false;
      }
      if (++idleTicks < calls.gapTicks()) {
        return false;
      }
      due = w;
      return true;
    }

    /** Whether what the tick found still holds: a message may have come in since. */
    boolean isOverdue() {
      int d = due;
      return d == HEADERS ? callAttempt.received() == 0 : d != 0 && d == wait;
    }

    private RuntimeException timeout(String what) {
      return Status.DEADLINE_EXCEEDED
          .withDescription("bigtable read: " + what + ", on " + callAttempt.channel())
          .asRuntimeException();
    }

    CallEnd.EndedBy endedBy() {
      if (!overdue) {
        return CallEnd.EndedBy.PEER;
      }
      return due == HEADERS ? CallEnd.EndedBy.HEADERS_TIMEOUT : CallEnd.EndedBy.GAP_TIMEOUT;
    }

    RuntimeException overdue() {
      overdue = true;
      return due == HEADERS
          ? timeout("no headers for " + calls.settings().headersTimeout())
          : timeout(
              "nothing received for " + calls.settings().gapTimeout() + " while a row was wanted");
    }
  }
}
