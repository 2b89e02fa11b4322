package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.grpc.DeliveryExecutor;
import dev.timebound.health.Claim;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.Context;

/** A claim that a call leaves open would keep its shard busy, a trial's would keep it out. */
@DisplayName("CAS-20 a call that is given up in the midst of its beginning leaves no claim")
class GivenUpTest {
  private final Clock clock = new Clock();
  private final TestRing ring =
      TestRing.of(
          3,
          settings ->
              settings.scheduler(clock).rpcTimeout(Duration.ZERO).cooldown(Duration.ofMillis(100)));

  @AfterEach
  void close() {
    clock.cancelAt(0, () -> {});
    ring.close();
    clock.dispose();
  }

  /** Cancels something in the midst of what looks at it for the n-th time. */
  private static final class Clock implements Scheduler {
    private final Scheduler real = Schedulers.newParallel("given-up", 1);
    private int left;
    private @Nullable Thread only;
    private Runnable cancel = () -> {};

    synchronized void cancelAt(int look, Runnable what) {
      left = look;
      only = Thread.currentThread();
      cancel = what;
    }

    @Override
    public long now(TimeUnit unit) {
      Runnable due = null;
      synchronized (this) {
        if (Thread.currentThread() == only && --left == 0) {
          due = cancel;
        }
      }
      if (due != null) {
        due.run();
      }
      return real.now(unit);
    }

    @Override
    public Disposable schedule(Runnable task) {
      return real.schedule(task);
    }

    @Override
    public Disposable schedule(Runnable task, long delay, TimeUnit unit) {
      return real.schedule(task, delay, unit);
    }

    @Override
    public Disposable schedulePeriodically(
        Runnable task, long initialDelay, long period, TimeUnit unit) {
      return real.schedulePeriodically(task, initialDelay, period, unit);
    }

    @Override
    public Worker createWorker() {
      return real.createWorker();
    }

    @Override
    public void dispose() {
      real.dispose();
    }
  }

  private static final class Asking extends BaseSubscriber<Object> {
    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      // asks when it is told to
    }

    @Override
    protected void hookOnError(Throwable failure) {
      // whatever became of it
    }
  }

  private void atEveryLook(Function<CasRing, Publisher<?>> call) {
    atEveryLook(call, () -> {});
  }

  private void atEveryLook(Function<CasRing, Publisher<?>> call, Runnable before) {
    for (int look = 1; look <= 25; look++) {
      before.run();
      Asking asking = new Asking();
      clock.cancelAt(look, asking::cancel);
      Flux.from(call.apply(ring.ring)).cast(Object.class).subscribe(asking);
      asking.requestUnbounded();
      clock.cancelAt(0, () -> {});
      asking.cancel();
      until("no claim is open", () -> ring.ring.health().openClaims() == 0);
    }
  }

  @Test
  @DisplayName("CAS-20 a read")
  void read() {
    Digest digest = ring.put(0, 0);
    atEveryLook(cas -> cas.read(digest));
  }

  @Test
  @DisplayName("CAS-20 an existence check and a read of many")
  void many() {
    Set<Digest> digests = Set.of(ring.put(0, 0), ring.put(1, 1), ring.put(2, 2));
    atEveryLook(cas -> cas.findMissing(digests));
    atEveryLook(cas -> cas.readMany(digests));
  }

  @Test
  @DisplayName("CAS-20 writes, one and many")
  void writes() {
    List<byte[]> blobs = List.of(ring.contentOf(0, 100), ring.contentOf(1, 100));
    atEveryLook(cas -> cas.write(blobs.get(0)));
    atEveryLook(cas -> cas.writeMany(blobs));
  }

  @Test
  @DisplayName("CAS-20 a read that has the trial, and one whose home is suspect")
  void trial() {
    ring.server(0).reads().always(CasScript.status(Status.UNAVAILABLE));
    for (int i = 0; i < 3; i++) {
      TestRing.failure(ring.ring.read(ring.put(0)));
    }
    Digest digest = ring.put(0, 0, 1);
    atEveryLook(
        cas -> cas.read(digest),
        () -> until("the trial is free", () -> ring.status(0) == MemberStatus.HALF_OPEN));
    atEveryLook(cas -> cas.read(digest));
  }

  /** A read that is cancelled on its way to its claim, when it has it but has not kept it yet. */
  private final class Cancelled extends BlobRead {
    private final Runnable cancel;

    Cancelled(Reads reads, Digest digest, Runnable cancel) {
      super(reads, digest, Context.empty());
      this.cancel = cancel;
    }

    @Override
    @Nullable Claim<Shard> claim() {
      Claim<Shard> claim = super.claim();
      assertThat(ring.ring.health().openClaims()).isEqualTo(1);
      cancel.run();
      return claim;
    }
  }

  @Test
  @DisplayName("CAS-20 a read that is cancelled while it gets its claim gives it back at once")
  void betweenClaimAndBegin() {
    DeliveryExecutor delivery = DeliveryExecutor.create("given-up", null);
    ShardCalls calls = ring.ring.calls();
    RingShards shards = ring.ring.shards();
    Reads reads =
        new Reads(
            shards,
            calls,
            delivery,
            CasMeters.of(null, "cas"),
            CasObservations.of(null, "cas"),
            new Compression(false, new ShardCapabilities(shards, calls), () -> 0));
    Asking asking = new Asking();
    Digest digest = ring.put(0, 0);
    new ReadAttemptFlux(new Cancelled(reads, digest, asking::cancel))
        .cast(Object.class)
        .subscribe(asking);
    asking.requestUnbounded();
    assertThat(ring.ring.health().openClaims()).isZero();
    assertThat(ring.server(0).reads().calls()).isEmpty();
    delivery.close();
  }
}
