package dev.timebound.cas;

import com.google.protobuf.ByteString;
import dev.timebound.cas.RingSettings.AttemptLimit;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.health.Claim;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * One attempt of a read: one stream from one shard, each piece checked and handed on as it comes,
 * watched while the caller waits. It begins when the caller first asks for something.
 *
 * <p>The {@link ReadWait} holds it together: who ends a wait (the next piece, the end, the timer, a
 * cancel) is the one to go on, so that no two signals meet downstream. A piece is asked of the call
 * only when the caller asks for one, so that a wait is the caller's, and a slow caller never runs
 * into a limit. (CAS-3, CAS-33)
 */
final class ReadAttempt implements Subscription, CoreSubscriber<ReadResponse> {
  private static final AtomicLongFieldUpdater<ReadAttempt> DEMAND =
      AtomicLongFieldUpdater.newUpdater(ReadAttempt.class, "demand");
  private static final AtomicIntegerFieldUpdater<ReadAttempt> BEGUN =
      AtomicIntegerFieldUpdater.newUpdater(ReadAttempt.class, "begun");

  private static final AtomicReferenceFieldUpdater<ReadAttempt, @Nullable Throwable> PARKED =
      AtomicReferenceFieldUpdater.newUpdater(ReadAttempt.class, Throwable.class, "parked");

  private static final MethodDescriptor<ReadRequest, ReadResponse> METHOD = PieceMarshaller.READ;

  /** How long the server's goodbye is waited for once the blob is whole. */
  private static final long GOODBYE = Duration.ofSeconds(1).toNanos();

  private final BlobRead read;
  private final CoreSubscriber<? super ByteBuffer> actual;
  private final RingSettings settings;
  private final Operators.DeferredSubscription upstream = new Operators.DeferredSubscription();

  private final ReadWait wait;
  private final CallStage stage = new CallStage();

  private volatile long demand;

  @SuppressWarnings("unused") // by BEGUN
  private volatile int begun;

  private volatile @Nullable Claim<Shard> claim;
  private volatile ShardCalls.@Nullable Opened opened;

  /** A failure that is told when the caller asks for more. */
  private volatile @Nullable Throwable parked;

  // --- of whoever may go on

  private Deadline limit = Deadline.none();
  private String limitInWords = "";
  private long beganAt;

  /** Bytes have come: until then the attempt's own limit holds. */
  private boolean alive;

  /** All bytes have been handed on. */
  private boolean whole;

  ReadAttempt(BlobRead read, CoreSubscriber<? super ByteBuffer> actual) {
    this.read = read;
    this.actual = actual;
    this.settings = read.reads().settings();
    this.wait = new ReadWait(settings, read.reads()::deliver, this::overdue, this::held);
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
      wait.start();
      Throwable failure = PARKED.getAndSet(this, null);
      if (failure != null) {
        actual.onError(failure);
      }
    }
    upstream.request(n);
  }

  @Override
  public void cancel() {
    if (wait.end()) {
      upstream.cancel();
      Claim<Shard> c = claim;
      if (c != null) {
        calls().cancelled(c, METHOD);
        charge();
      }
    }
  }

  private void begin() {
    Claim<Shard> next = read.claim();
    claim = next;
    if (wait.isOver()) {
      if (next != null) {
        calls().cancelled(next, METHOD); // the cancel came before it was there
      }
      return;
    }
    if (next == null) {
      fail(Status.UNAVAILABLE.withDescription("the ring has no shard").asRuntimeException());
      return;
    }
    beganAt = settings.now();
    AttemptLimit attempt = settings.attemptLimit(read.caller(), read.candidatesLeft());
    limit = attempt.deadline();
    limitInWords = attempt.words();
    long nanos = limit.isNone() ? 0 : limit.remainingNanos();
    if (!limit.isNone() && nanos <= 0) {
      fail(late());
      return;
    }
    wait.begin(nanos);
    calls()
        .open(next, stage)
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
    if (!wait.take()) {
      return;
    }
    ByteString data = response.getData();
    if (data.isEmpty()) {
      empty();
      return;
    }
    if (!alive) {
      alive = true;
      wait.patience(settings.gapTimeout().toNanos());
      Claim<Shard> c = claim;
      if (c != null && c.isTrial()) {
        calls()
            .succeeded(
                c, METHOD); // not with the last byte of a long blob: others wait for the shard
      }
    }
    ByteBuffer piece = data.asReadOnlyByteBuffer();
    try {
      read.received(piece);
    } catch (DataLossException wrong) {
      read.reads().meters().mismatch();
      upstream.cancel();
      wait.end();
      fail(wrong);
      return;
    }
    read.reads().meters().read(piece.remaining());
    whole = read.remaining() == 0;
    handOn(piece);
    long left = Operators.produced(DEMAND, this, 1);
    if (whole) {
      awaitGoodbye();
    } else if (left > 0) {
      wait.start();
    }
  }

  private void handOn(ByteBuffer piece) {
    try {
      actual.onNext(piece);
    } catch (Throwable t) {
      cancel(); // it must not throw, and gets nothing more
      throw t;
    }
  }

  /**
   * A sign of life between two pieces. Before the first it is no answer, since a proxy may send it
   * for a dead server, and after the last there is nothing to live for.
   */
  private void empty() {
    if (alive && !whole) {
      wait.start();
    } else {
      wait.goOn();
    }
    upstream.request(1);
  }

  /** What comes beyond the last byte must be seen; what does not come is not missed. (CAS-30a) */
  private void awaitGoodbye() {
    Claim<Shard> c = claim;
    if (c != null) {
      calls().succeeded(c, METHOD);
      read.reads().compression().served(c.member(), read.digest(), currentContext());
    }
    if (wait.last(Math.min(GOODBYE, settings.gapTimeout().toNanos()))) {
      upstream.request(1);
    }
  }

  @Override
  public void onError(Throwable failure) {
    if (!wait.end()) {
      return;
    }
    if (whole) {
      complete(); // CAS-30a
      return;
    }
    // The call itself knows of no deadline but the caller's.
    fail(ShardCalls.told(failure, read.caller(), shard()));
  }

  @Override
  public void onComplete() {
    if (!wait.end()) {
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
      calls().failed(c, METHOD, failure);
    }
  }

  private ShardCalls calls() {
    return read.reads().calls();
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

  /** The wait has lasted too long, and is over. */
  private void overdue() {
    upstream.cancel();
    if (whole) {
      complete();
    } else {
      fail(late());
    }
  }

  /** So has the wait for a thread that could tell of it. */
  private void held() {
    upstream.cancel();
    if (whole) {
      complete();
    } else if (isCallersDeadline()) {
      fail(late());
    } else {
      fail(new WaitedHereException(shard(), CallStage.THREAD, null));
    }
  }

  private boolean isCallersDeadline() {
    return !alive && (limit == read.caller() || read.caller().isExpired());
  }

  private Throwable late() {
    if (isCallersDeadline()) {
      return new DeadlineExceededException(Reads.OPERATION, read.caller());
    }
    String here = stage.here();
    if (here != null) {
      return new WaitedHereException(shard(), here, null);
    }
    String what =
        !alive
            ? ": nothing received within " + limitInWords
            : ": nothing received for " + settings.gapTimeout() + " while it was waited for";
    return Status.DEADLINE_EXCEEDED.withDescription(shard() + what).asRuntimeException();
  }
}
