package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.protobuf.ByteString;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.FailureKind;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
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
 *
 * <p>Timers enter the loop by way of the delivery executor: rows are handed on by whoever owns the
 * loop, and a subscriber that blocks must not do so on the timers' thread.
 */
final class ReadRowsSubscription implements Subscription, RowSink, ReadWatch.Watched {
  static final String OPERATION = "bigtable.read-rows";

  private static final AtomicIntegerFieldUpdater<ReadRowsSubscription> WIP =
      AtomicIntegerFieldUpdater.newUpdater(ReadRowsSubscription.class, "wip");
  private static final AtomicLongFieldUpdater<ReadRowsSubscription> REQUESTED =
      AtomicLongFieldUpdater.newUpdater(ReadRowsSubscription.class, "requested");

  private final ReadRowsCalls calls;
  private final BigtableObservations.Observed observed;
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

  /** A request for less than one row: ends the read. */
  private volatile @Nullable Throwable refused;

  /**
   * The attempt in hand; null before the first, while a retry waits, and at the end. Written by the
   * loop.
   */
  private volatile @Nullable ReadAttempt attempt;

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

  /** How often, since the last progress, the server told when to come back. */
  private int toldToRetry;

  private final AttemptHeaders headers = new AttemptHeaders();
  private final Set<String> avoid = new HashSet<>();
  private @Nullable String lastChannel;
  private @Nullable Disposable backoff;

  /** How the last attempt failed; null before one has. */
  private @Nullable Throwable lastFailure;

  /** What is to follow from {@link #lastFailure}, once somebody wants a row. */
  private BigtableStatuses.@Nullable Verdict parked;

  ReadRowsSubscription(
      ReadRowsCalls calls,
      ObservedCall call,
      ReadRowsRequest request,
      CoreSubscriber<? super Row> actual) {
    this.calls = calls;
    this.actual = actual;
    this.deadline = Deadlines.current(context());
    this.progress = new ReadProgress(request);
    this.reversed = request.getReversed();
    this.next = request;
    this.beganAt = calls.now();
    this.observed = calls.observations().begin(call, request.getTableName(), context());
  }

  /** The next attempt may start. */
  void begin() {
    backoffOver = true;
    drain();
  }

  Context context() {
    return actual.currentContext();
  }

  @Override
  public void request(long n) {
    if (n > 0) {
      Operators.addCap(REQUESTED, this, n);
    } else {
      refused = new IllegalArgumentException("request: " + n + " (expected: > 0, rule 3.9)");
    }
    drain();
  }

  @Override
  public void cancel() {
    cancelled = true;
    // At once, though the loop may be held up by a subscriber that blocks.
    ReadAttempt a = attempt;
    if (a != null) {
      a.cancel();
    }
    drain();
  }

  void drain() {
    if (WIP.getAndIncrement(this) != 0) {
      return;
    }
    int missed = 1;
    do {
      if (!ended) {
        try {
          pass();
        } catch (Throwable t) {
          // A subscriber must not throw (rule 2.13): it gets no further signal, and its call does
          // not stay open.
          if (!ended) {
            end("error", t);
          }
          throw t;
        }
      }
      missed = WIP.addAndGet(this, -missed);
    } while (missed != 0);
  }

  private void pass() {
    Throwable bad = refused;
    if (cancelled) {
      letGo();
      // By the caller; where its deadline's timer did it, that is told as what it is.
      Throwable late =
          deadline.isExpired()
              ? new DeadlineExceededException(OPERATION, deadline, lastFailure)
              : null;
      end(late == null ? BigtableMeters.CANCELLED : BigtableMeters.DEADLINE, late);
    } else if (bad != null) {
      fail(bad);
    } else {
      run();
    }
  }

  /** As far as rows, demand and signals at hand allow. */
  private void run() {
    for (; ; ) {
      emit();
      if (cancelled || nextRow < rows.size()) {
        return;
      }
      ReadAttempt a = attempt;
      if (a == null) {
        if (parked != null && emitted != requested) {
          scheduleRetry();
        }
        if (ended || !backoffOver) {
          return;
        }
        backoffOver = false;
        startAttempt();
        continue;
      }
      boolean done = a.isDone(); // before the message: it is set after the last one
      Message message = a.takeMessage();
      if (message != null) {
        merge(a, message);
      } else if (done) {
        terminated(a, a.error());
      } else if (a.isOverdue()) {
        RuntimeException cause = a.overdue();
        // The verdict first: the cancel that follows says nothing of the channel. (BT-30, BT-35)
        a.callAttempt.failed(FailureKind.CONNECTION, cause);
        a.cancel();
        terminated(a, cause);
      } else {
        if (emitted != requested) {
          a.startWait(); // what it brings at once is seen by the next pass
        }
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

  private void merge(ReadAttempt a, Message message) {
    advanced = false;
    try {
      a.merger.push(message.bytes, message.length, this);
      MessageBytes.INSTANCE.giveBack(message); // rows are free of it
    } catch (InvalidChunkStreamException e) {
      // The rows that were whole before the fault are delivered first.
      a.broken(e);
    }
    if (advanced) {
      attempts = 1;
      toldToRetry = 0;
      if (!avoid.isEmpty()) {
        avoid.clear();
      }
      a.armGap(calls.settings().retries());
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

  /** The attempt is over: the read ends, or waits for its retry. */
  private void terminated(ReadAttempt a, @Nullable Throwable failure) {
    attempt = null;
    charge(a);
    if (failure == null) {
      try {
        a.merger.end();
      } catch (InvalidChunkStreamException e) {
        fail(e);
        return;
      }
      complete();
      return;
    }
    if (failure instanceof InvalidChunkStreamException) {
      fail(failure);
      return;
    }
    next = progress.next();
    if (next == null) {
      // All that was asked for has been delivered: only the goodbye was lost. (BT-32)
      complete();
      return;
    }
    if (failure instanceof DeadlineExceededException) {
      // Made before this attempt was charged.
      Throwable cause = failure.getCause() == null ? lastFailure : failure.getCause();
      fail(new DeadlineExceededException(OPERATION, deadline, cause));
      return;
    }
    String channel = a.callAttempt.channel();
    if (channel != null) {
      avoid.add(channel);
    }
    BigtableStatuses.Verdict verdict =
        BigtableStatuses.of(failure, a.endedBy(), a.callAttempt.isSent());
    if (verdict == null || !mayRetry(verdict)) {
      fail(failure);
      return;
    }
    lastFailure = failure;
    parked = verdict;
  }

  /** An attempt after which the server told when to come back does not count. (BT-38) */
  private boolean mayRetry(BigtableStatuses.Verdict verdict) {
    if (!calls.settings().retries() || !verdict.isTold()) {
      return verdict.retryable() && attempts < calls.settings().maxAttempts();
    }
    attempts--;
    return ++toldToRetry <= BigtableSettings.MAX_TOLD_RETRIES;
  }

  /** Only now that a row is wanted: a stream nobody reads sends no retries. */
  private void scheduleRetry() {
    BigtableStatuses.Verdict verdict = Objects.requireNonNull(parked);
    Throwable failure = Objects.requireNonNull(lastFailure);
    parked = null;
    long delay = Math.max(calls.backoffNanos(Math.max(1, attempts)), verdict.retryDelayNanos());
    if (!deadline.isNone() && deadline.remainingNanos() <= delay) {
      // No attempt could start before the deadline. (BT-36)
      fail(failure);
      return;
    }
    try {
      backoff = calls.deliverIn(delay, this::begin);
    } catch (RejectedExecutionException shutDown) {
      failure.addSuppressed(shutDown);
      fail(failure);
      return;
    }
    calls.meters().resumed(verdict.line());
  }

  private void startAttempt() {
    ReadRowsRequest request = next;
    if (request == null) {
      throw new IllegalStateException("an attempt with nothing left to read");
    }
    if (attemptsInAll == 0) {
      calls.watch().add(this);
    }
    backoff = null;
    attempts++;
    attemptsInAll++;
    RowMerger merger = new RowMerger(reversed, progress.resumePoint());
    ReadAttempt a = new ReadAttempt(this, calls, attemptsInAll, avoid, merger);
    // The last attempt has none, so that a read slow on the server still completes. (BT-33)
    a.armGap(attempts < calls.settings().maxAttempts());
    attempt = a;
    calls.call(request, a.callAttempt, headers).subscribe(a);
  }

  private void complete() {
    end(BigtableMeters.OK, null);
    actual.onComplete();
  }

  private void fail(Throwable failure) {
    end(BigtableMeters.outcome(failure), failure);
    actual.onError(failure);
  }

  /** Leaves nothing behind: no call, no timer, no row. */
  private void end(String outcome, @Nullable Throwable failure) {
    ended = true;
    calls.watch().remove(this);
    letGo();
    Disposable timer = backoff;
    if (timer != null) {
      timer.dispose();
    }
    for (; nextRow < rows.size(); nextRow++) {
      Operators.onDiscard(rows.get(nextRow), actual.currentContext());
    }
    rows.clear();
    nextRow = 0;
    calls.meters().ended(outcome, attemptsInAll, calls.now() - beganAt);
    observed.ended(outcome, failure, attemptsInAll, lastChannel, deadline);
  }

  private void letGo() {
    ReadAttempt a = attempt;
    attempt = null;
    if (a != null) {
      a.cancel();
      charge(a);
    }
  }

  private void charge(ReadAttempt a) {
    lastChannel = a.callAttempt.channel();
    if (!deadline.isNone()) {
      deadline.charge(OPERATION + " attempt " + a.number, a.elapsed());
    }
  }

  @Override
  public void tick() {
    ReadAttempt a = attempt;
    if (a != null && a.tick()) {
      calls.deliver(
          () -> {
            a.confirm();
            drain();
          });
    }
  }
}
