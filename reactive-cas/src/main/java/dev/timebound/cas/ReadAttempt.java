package dev.timebound.cas;

import com.google.protobuf.ByteString;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.health.Claim;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * One attempt of a read: one stream from one shard, each piece checked and handed on as it comes,
 * watched while the caller waits. It begins when the caller first asks for something.
 *
 * <p>{@link #wait} holds it together. While the caller waits it has the wait's number; who takes it
 * away (the next piece, the end, the timer, a cancel) is the one to go on, so that no two signals
 * meet downstream. A piece is asked of the call only when the caller asks for one, so that a wait
 * is the caller's, and a slow caller never runs into a limit. (CAS-3, CAS-33)
 */
final class ReadAttempt implements Subscription, CoreSubscriber<ReadResponse> {
  private static final AtomicLongFieldUpdater<ReadAttempt> DEMAND =
      AtomicLongFieldUpdater.newUpdater(ReadAttempt.class, "demand");
  private static final AtomicIntegerFieldUpdater<ReadAttempt> WAIT =
      AtomicIntegerFieldUpdater.newUpdater(ReadAttempt.class, "wait");
  private static final AtomicIntegerFieldUpdater<ReadAttempt> BEGUN =
      AtomicIntegerFieldUpdater.newUpdater(ReadAttempt.class, "begun");

  private static final AtomicReferenceFieldUpdater<ReadAttempt, @Nullable Throwable> PARKED =
      AtomicReferenceFieldUpdater.newUpdater(ReadAttempt.class, Throwable.class, "parked");

  private static final int NOBODY = 0;
  private static final int ENDED = -1;

  /** How long the server's goodbye is waited for once the blob is whole. */
  private static final long GOODBYE = Duration.ofSeconds(1).toNanos();

  private final BlobRead read;
  private final CoreSubscriber<? super ByteBuffer> actual;
  private final RingSettings settings;
  private final Operators.DeferredSubscription upstream = new Operators.DeferredSubscription();

  private volatile long demand;
  private volatile int wait;

  @SuppressWarnings("unused") // by BEGUN
  private volatile int begun;

  private volatile @Nullable Claim<Shard> claim;
  private volatile ShardCalls.@Nullable Opened opened;

  /** A failure that is told when the caller asks for more. */
  private volatile @Nullable Throwable parked;

  // --- of whoever may go on

  private Deadline limit = Deadline.none();
  private long beganAt;

  /** Waits so far; the last one's number while one lasts. */
  private int waits;

  /** Nothing has come yet, and the attempt's own limit holds. */
  private boolean first = true;

  /** Bytes have come. */
  private boolean alive;

  /** All bytes have been handed on. */
  private boolean whole;

  // --- the timer's

  private volatile long waitsSince;

  /** How long a wait may last now, in nanoseconds; 0 where there is no limit. */
  private volatile long patience;

  private volatile Disposable timer = Disposables.disposed();

  ReadAttempt(BlobRead read, CoreSubscriber<? super ByteBuffer> actual) {
    this.read = read;
    this.actual = actual;
    this.settings = read.reads().settings();
  }

  @Override
  public Context currentContext() {
    return actual.currentContext();
  }

  // --- the caller's side

  @Override
  public void request(long n) {
    if (!Operators.validate(n)) {
      return;
    }
    long before = Operators.addCap(DEMAND, this, n);
    if (BEGUN.compareAndSet(this, 0, 1)) {
      begin();
    } else if (before == 0) {
      startWait();
      Throwable failure = PARKED.getAndSet(this, null);
      if (failure != null) {
        actual.onError(failure);
      }
    }
    upstream.request(n);
  }

  @Override
  public void cancel() {
    if (WAIT.getAndSet(this, ENDED) != ENDED) {
      timer.dispose();
      upstream.cancel();
      Claim<Shard> c = claim;
      if (c != null) {
        c.cancelled();
        charge();
      }
    }
  }

  private void begin() {
    Claim<Shard> next = read.claim();
    claim = next;
    if (wait == ENDED) {
      if (next != null) {
        next.cancelled(); // the cancel came before it was there
      }
      return;
    }
    if (next == null) {
      fail(Status.UNAVAILABLE.withDescription("the ring has no shard").asRuntimeException());
      return;
    }
    beganAt = settings.now();
    limit = settings.attemptLimit(read.caller(), read.candidatesLeft());
    long nanos = limit.isNone() ? 0 : limit.remainingNanos();
    if (nanos < 0 || (nanos == 0 && !limit.isNone())) {
      fail(new DeadlineExceededException(Reads.OPERATION, read.caller()));
      return;
    }
    patience = nanos;
    startWait();
    armWithin(nanos);
    read.reads()
        .calls()
        .open(next)
        .flatMapMany(
            with -> {
              opened = with;
              return read.reads().stream(with, next.member(), read.digest(), read.offset());
            })
        .subscribe(this);
  }

  // --- the call's side

  @Override
  public void onSubscribe(Subscription s) {
    upstream.set(s);
  }

  @Override
  public void onNext(ReadResponse response) {
    if (!takeWait()) {
      return;
    }
    ByteString data = response.getData();
    if (first) {
      first = false;
      patience = settings.gapTimeout().toNanos();
    }
    if (data.isEmpty()) {
      startWait();
      upstream.request(1);
      return;
    }
    if (!alive) {
      alive = true;
      Claim<Shard> c = claim;
      if (c != null && c.isTrial()) {
        c.succeeded(); // not with the last byte of a long blob: others wait for the shard
      }
    }
    ByteBuffer piece = data.asReadOnlyByteBuffer();
    try {
      read.received(piece);
    } catch (DataLossException wrong) {
      read.reads().meters().mismatch();
      upstream.cancel();
      end();
      fail(wrong);
      return;
    }
    read.reads().meters().read(piece.remaining());
    whole = read.remaining() == 0;
    actual.onNext(piece);
    long left = Operators.produced(DEMAND, this, 1);
    if (whole) {
      awaitGoodbye();
    } else if (left > 0) {
      startWait();
    }
  }

  /** What comes beyond the last byte must be seen; what does not come is not missed. (CAS-30a) */
  private void awaitGoodbye() {
    Claim<Shard> c = claim;
    if (c != null) {
      c.succeeded();
      read.reads().compression().served(c.member(), read.digest(), currentContext());
    }
    timer.dispose();
    patience = Math.min(GOODBYE, settings.gapTimeout().toNanos());
    if (startWait()) {
      arm(patience);
      upstream.request(1);
    }
  }

  @Override
  public void onError(Throwable failure) {
    if (!end()) {
      return;
    }
    if (whole) {
      complete(); // CAS-30a
      return;
    }
    // The call itself knows of no deadline but the caller's.
    fail(ShardCalls.told(failure, read.caller(), read.caller(), shard()));
  }

  @Override
  public void onComplete() {
    if (!end()) {
      return;
    }
    if (whole) {
      complete();
    } else {
      read.reads().meters().mismatch();
      fail(read.endedEarly());
    }
  }

  private void complete() {
    charge();
    actual.onComplete();
  }

  private void fail(Throwable failure) {
    tell(failure);
    Claim<Shard> c = claim;
    if (c != null) {
      charge();
      read.failed(c.member(), opened);
    }
    Throwable error =
        failure instanceof DeadlineExceededException late
            ? new DeadlineExceededException(Reads.OPERATION, read.caller(), late.getCause())
            : failure;
    if (demand == 0 && read.goesOn()) {
      // A stream that nobody reads makes no further attempts.
      parked = error;
      if (demand == 0) {
        return;
      }
      error = PARKED.getAndSet(this, null);
    }
    if (error != null) {
      actual.onError(error);
    }
  }

  /** Tells the shard's claim, or a new one where a trial has ended with its first bytes. */
  private void tell(Throwable failure) {
    Claim<Shard> c = claim;
    if (c != null && c.isTrial() && alive) {
      c = read.claimAgain(c.member());
    }
    if (c != null) {
      ShardCalls.end(c, failure);
    }
  }

  private String shard() {
    Claim<Shard> c = claim;
    return c == null ? "" : c.member().name();
  }

  private void charge() {
    Deadline caller = read.caller();
    if (!caller.isNone()) {
      caller.charge(Reads.OPERATION + " attempt " + read.attempts(), settings.now() - beganAt);
    }
  }

  // --- the wait

  /** False where the attempt is over. */
  private boolean startWait() {
    waitsSince = settings.now();
    int number = waits + 1;
    waits = number < 0 ? 1 : number;
    return WAIT.compareAndSet(this, NOBODY, waits);
  }

  /** Ends the wait for what has come; false where the attempt is over. */
  private boolean takeWait() {
    while (true) {
      int w = wait;
      if (w == ENDED) {
        return false;
      }
      if (WAIT.compareAndSet(this, w, NOBODY)) {
        return true;
      }
    }
  }

  /** True for the one that ends the attempt. */
  private boolean end() {
    boolean mine = WAIT.getAndSet(this, ENDED) != ENDED;
    if (mine) {
      timer.dispose();
    }
    return mine;
  }

  private void arm(long nanos) {
    try {
      timer = settings.scheduler().schedule(this::tick, nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException shutDown) {
      return; // no more timers: the caller's deadline still holds
    }
    if (wait == ENDED) {
      timer.dispose();
    }
  }

  /**
   * One timer for all waits, never longer away than the shortest limit to come. What is overdue is
   * confirmed where pieces are delivered, behind those that have come in by now: one that waits
   * there for a thread is no silence of the server's.
   */
  private void tick() {
    int w = wait;
    if (w == ENDED) {
      return;
    }
    long most = patience;
    long left = w == NOBODY || most == 0 ? most : most - (settings.now() - waitsSince);
    if (left > 0 || most == 0) {
      armWithin(left);
    } else {
      read.reads().deliver(() -> overdue(w));
    }
  }

  private void armWithin(long nanos) {
    long gap = settings.gapTimeout().toNanos();
    arm(nanos == 0 ? gap : Math.min(nanos, gap));
  }

  private void overdue(int w) {
    if (!WAIT.compareAndSet(this, w, ENDED)) {
      if (wait != ENDED) {
        armWithin(0);
      }
      return;
    }
    if (whole) {
      upstream.cancel();
      complete();
      return;
    }
    upstream.cancel();
    fail(late());
  }

  private Throwable late() {
    Deadline caller = read.caller();
    if (first && (limit == caller || caller.isExpired())) {
      return new DeadlineExceededException(Reads.OPERATION, caller);
    }
    String what =
        first
            ? ": nothing received within " + Duration.ofNanos(patience)
            : ": nothing received for " + settings.gapTimeout() + " while it was waited for";
    return Status.DEADLINE_EXCEEDED.withDescription(shard() + what).asRuntimeException();
  }
}
