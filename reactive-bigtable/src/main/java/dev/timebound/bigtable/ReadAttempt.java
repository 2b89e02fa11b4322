package dev.timebound.bigtable;

import dev.timebound.grpc.CallAttempt;
import io.grpc.Status;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.util.context.Context;

/**
 * One call of a read: what came of it, left as marks for the read's loop, and how long it has been
 * silent. Where nothing else is said, a method belongs to that loop.
 *
 * <p>What the watch finds overdue is confirmed by a task on the delivery executor, behind what has
 * come in by then: a message that waits there for a thread is no silence of the server's. And a
 * task that itself waited long says that the executor is short of threads, so the count starts
 * anew: a slow consumer is not the connection's fault. Once, and not again for the same wait: on a
 * machine that is always short of threads a dead connection must still be found. (BT-30)
 */
final class ReadAttempt implements CoreSubscriber<Message> {
  private static final AtomicReferenceFieldUpdater<ReadAttempt, @Nullable Message> MESSAGE =
      AtomicReferenceFieldUpdater.newUpdater(ReadAttempt.class, Message.class, "message");
  private static final AtomicIntegerFieldUpdater<ReadAttempt> WAIT =
      AtomicIntegerFieldUpdater.newUpdater(ReadAttempt.class, "wait");
  private static final AtomicIntegerFieldUpdater<ReadAttempt> LOOK =
      AtomicIntegerFieldUpdater.newUpdater(ReadAttempt.class, "look");

  /** In {@link #due}: no headers came. Other values number a wait. */
  private static final int HEADERS = -1;

  /** A confirmation that takes longer than this many ticks says nothing. */
  private static final int PROMPT_TICKS = ReadWatch.RESOLUTION / 2;

  private static final int NO_LOOK = 0;
  private static final int LOOK_ASKED = 1;
  private static final int LOOK_LATE = 2;

  final int number;
  final CallAttempt callAttempt;
  final RowMerger merger;

  private final ReadRowsSubscription read;
  private final ReadRowsCalls calls;
  private final long startedAt;
  private volatile @Nullable Subscription upstream;

  /**
   * At most one: the next is asked for when it has been merged and its rows delivered. Published by
   * the loop's counter, so a plain store would nearly do.
   */
  private volatile @Nullable Message message;

  private volatile @Nullable Throwable error;
  private volatile boolean done;

  /** Number of the wait under way, 0 when the caller does not wait. */
  private volatile int wait;

  private int waits;
  private volatile boolean gapArmed;

  /** Whether a confirmation of what the tick found is under way. */
  private volatile int look;

  /** What was confirmed overdue: {@link #HEADERS} or a wait's number; 0 where nothing. */
  private volatile int due;

  private boolean overdue;

  // --- the watch's own
  private int found;
  private int seenWait;
  private long seenReceived = -1;
  private int idleTicks;
  private int headerTicks;
  private int lookTicks;

  /** A look at the wait under way was late already. */
  private boolean forgiven;

  ReadAttempt(
      ReadRowsSubscription read,
      ReadRowsCalls calls,
      int number,
      Set<String> avoid,
      RowMerger merger) {
    this.read = read;
    this.calls = calls;
    this.number = number;
    this.callAttempt = CallAttempt.avoiding(avoid);
    this.merger = merger;
    this.startedAt = calls.now();
  }

  // --- the call's signals, one at a time

  @Override
  public Context currentContext() {
    return read.context();
  }

  @Override
  public void onSubscribe(Subscription s) {
    upstream = s;
  }

  @Override
  public void onNext(Message response) {
    MESSAGE.lazySet(this, response);
    read.drain();
  }

  @Override
  public void onError(Throwable e) {
    error = e;
    done = true;
    read.drain();
  }

  @Override
  public void onComplete() {
    done = true;
    read.drain();
  }

  // --- the loop's side

  boolean isDone() {
    return done;
  }

  @Nullable Throwable error() {
    return error;
  }

  /** The message at hand, once; the wait for it is over. */
  @Nullable Message takeMessage() {
    Message taken = message;
    if (taken != null) {
      MESSAGE.lazySet(this, null);
      WAIT.lazySet(this, 0);
    }
    return taken;
  }

  /** The stream is broken: it ends here, with that. */
  void broken(InvalidChunkStreamException fault) {
    cancel();
    error = fault;
    done = true;
  }

  /** The caller waits from now on, and a message is asked for; nothing where it waits already. */
  void startWait() {
    Subscription s = upstream;
    if (wait == 0 && s != null) {
      WAIT.lazySet(this, ++waits);
      s.request(1);
    }
  }

  void armGap(boolean on) {
    if (gapArmed != on) {
      gapArmed = on;
    }
  }

  /** From any thread, at any time. */
  void cancel() {
    Subscription s = upstream;
    if (s != null) {
      s.cancel();
    }
  }

  long elapsed() {
    return calls.now() - startedAt;
  }

  /** Whether what was confirmed still holds: a message may have come in since. */
  boolean isOverdue() {
    int d = due;
    return d == HEADERS ? callAttempt.received() == 0 : d != 0 && d == wait;
  }

  /** The error of an attempt that {@link #isOverdue}. */
  RuntimeException overdue() {
    overdue = true;
    return due == HEADERS
        ? timeout("no headers for " + calls.settings().headersTimeout())
        : timeout(
            "nothing received for " + calls.settings().gapTimeout() + " while a row was wanted");
  }

  CallEnd.EndedBy endedBy() {
    if (!overdue) {
      return CallEnd.EndedBy.PEER;
    }
    return due == HEADERS ? CallEnd.EndedBy.HEADERS_TIMEOUT : CallEnd.EndedBy.GAP_TIMEOUT;
  }

  private RuntimeException timeout(String what) {
    return Status.DEADLINE_EXCEEDED
        .withDescription("bigtable read: " + what + ", on " + callAttempt.channel())
        .asRuntimeException();
  }

  // --- the watch's side

  /** A tick of the watch. True where something is overdue: {@link #confirm} is to be run. */
  boolean tick() {
    if (look != NO_LOOK) {
      if (++lookTicks > PROMPT_TICKS
          && !forgiven
          && LOOK.compareAndSet(this, LOOK_ASKED, LOOK_LATE)) {
        forgiven = true;
        idleTicks = 0;
        headerTicks = 0;
      }
      return false;
    }
    long received = callAttempt.received();
    int w = wait;
    boolean news = w != seenWait || received != seenReceived;
    if (news) {
      seenWait = w;
      seenReceived = received;
      forgiven = false;
    }
    if (received == 0 && ++headerTicks > calls.headersTicks()) {
      return ask(HEADERS);
    }
    if (w == 0 || !gapArmed || news) {
      idleTicks = 0;
      return false;
    }
    return ++idleTicks >= calls.gapTicks() && ask(w);
  }

  private boolean ask(int what) {
    found = what;
    lookTicks = 0;
    look = LOOK_ASKED;
    return true;
  }

  /** On the delivery executor, behind all that had come in when the tick asked. */
  void confirm() {
    int what = found;
    if (LOOK.getAndSet(this, NO_LOOK) == LOOK_ASKED) {
      due = what;
    }
  }
}
