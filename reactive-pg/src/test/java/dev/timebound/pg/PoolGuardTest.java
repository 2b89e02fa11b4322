package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import java.time.Duration;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.reactivestreams.Subscription;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** An acquire that is cancelled at any stage leaves nothing lent. */
@ExtendWith(PostgresReplicaSetExtension.class)
class PoolGuardTest {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final int TIMES = 1_000;

  private final ReaderPools pools = new ReaderPools();
  private final Queue<Lease> had = new ConcurrentLinkedQueue<>();
  private PostgresServer standby;

  @BeforeEach
  void server(PostgresReplicaSet postgres) {
    standby = postgres.standby();
  }

  @AfterEach
  void nothingIsLeft() {
    pools.closeWith(standby);
  }

  enum Stage {
    /** Before anything was requested. */
    BEFORE_REQUEST,
    /** From within its own request, behind others. */
    AT_ONCE,
    /** While it waits for a connection that comes back at the same moment. */
    AGAINST_A_RETURN,
    /** While it waits, as its time runs out. */
    AGAINST_THE_TIMEOUT,
    /** While its lease is on its way through operators, on another thread. */
    THROUGH_OPERATORS,
    /** With the lease in hand, nothing done with it. */
    IN_HAND
  }

  @ParameterizedTest
  @EnumSource(Stage.class)
  @DisplayName("PG-4 cancelled at every stage a thousand times: nothing stays acquired")
  void cancelled(Stage stage) {
    ReaderPool pool = pools.to(standby, it -> it.size(2, 2));
    pool.start();
    ReaderPools.idleIs(pool, 2);
    Random random = new Random(stage.ordinal());
    for (int i = 0; i < TIMES; i++) {
      cancelOnce(pool, stage, random.nextInt(100_000));
    }
    ReaderPools.until(
        "nothing is acquired, nobody waits",
        () -> {
          endsWhatItHad();
          return pool.acquired() == 0 && pool.pending() == 0 && pool.idle() == 2;
        },
        () -> pool.acquired() + " acquired, " + pool.pending() + " wait, " + pool.idle() + " idle");
    // and both can be lent again
    Lease one = ReaderPools.acquire(pool);
    Lease two = ReaderPools.acquire(pool);
    assertThat(ReaderPools.value(one, "SELECT 1")).isEqualTo("1");
    assertThat(ReaderPools.value(two, "SELECT 1")).isEqualTo("1");
    one.release();
    two.release();
    ReaderPools.idleIs(pool, 2);
    assertThat(pools.counts.all()).isEqualTo(java.util.Map.of("dial ok", 2));
  }

  private void cancelOnce(ReaderPool pool, Stage stage, int nanos) {
    switch (stage) {
      case BEFORE_REQUEST -> {
        BaseSubscriber<Lease> caller = idle();
        pool.acquire(LONG).subscribe(caller);
        caller.cancel();
      }
      case AT_ONCE -> {
        Lease one = ReaderPools.acquire(pool);
        Lease two = ReaderPools.acquire(pool);
        pool.acquire(LONG).subscribe(Lease::release).dispose();
        one.release();
        two.release();
      }
      case AGAINST_A_RETURN -> {
        Lease one = ReaderPools.acquire(pool);
        Lease two = ReaderPools.acquire(pool);
        Disposable caller = pool.acquire(LONG).subscribe(Lease::release);
        race(caller::dispose, one::release, nanos);
        two.release();
      }
      case AGAINST_THE_TIMEOUT -> {
        Lease one = ReaderPools.acquire(pool);
        Lease two = ReaderPools.acquire(pool);
        Disposable caller =
            pool.acquire(Duration.ofMillis(1)).onErrorComplete().subscribe(Lease::release);
        LockSupport.parkNanos(900_000 + nanos);
        race(caller::dispose, one::release, 0);
        two.release();
      }
      case THROUGH_OPERATORS -> {
        Disposable caller =
            pool.acquire(LONG)
                .publishOn(Schedulers.parallel())
                .map(lease -> lease)
                .filter(lease -> true)
                .flatMapMany(lease -> Flux.just(lease).hide())
                .publishOn(Schedulers.boundedElastic())
                .subscribe(had::add);
        LockSupport.parkNanos(nanos / 2);
        caller.dispose();
        endsWhatItHad();
      }
      case IN_HAND -> {
        Queue<Subscription> subscription = new ConcurrentLinkedQueue<>();
        pool.acquire(LONG)
            .doOnSubscribe(subscription::add)
            .subscribe(
                new BaseSubscriber<>() {
                  @Override
                  protected void hookOnNext(Lease lease) {
                    // lost
                  }
                });
        subscription.element().cancel();
      }
    }
  }

  /**
   * Who got one ends it, as a reader would; one that was on its way to him comes a moment later.
   */
  private void endsWhatItHad() {
    for (Lease lease = had.poll(); lease != null; lease = had.poll()) {
      lease.release();
    }
  }

  private static BaseSubscriber<Lease> idle() {
    return new BaseSubscriber<>() {
      @Override
      protected void hookOnSubscribe(Subscription subscription) {
        // asks for nothing
      }
    };
  }

  private static void race(Runnable one, Runnable other, int nanos) {
    AtomicInteger ready = new AtomicInteger();
    Disposable task =
        Schedulers.parallel()
            .schedule(
                () -> {
                  ready.incrementAndGet();
                  one.run();
                });
    long patience = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (ready.get() == 0 && System.nanoTime() < patience) {
      Thread.onSpinWait();
    }
    long until = System.nanoTime() + nanos / 10;
    while (System.nanoTime() < until) {
      Thread.onSpinWait();
    }
    other.run();
    ReaderPools.until("the race is over", task::isDisposed, () -> "it is not");
  }

  @Test
  @DisplayName("PG-4 an operator that cancels what it has, and passes it on, keeps its lease")
  void cancelFromWithin() {
    ReaderPool pool = pools.to(standby, it -> it.size(1, 1));
    String answer =
        Flux.concat(pool.acquire(LONG), Mono.never())
            .next()
            .flatMap(
                lease ->
                    ReaderPools.run(lease, "SELECT 1")
                        .thenReturn("read")
                        .doFinally(any -> lease.release()))
            .block(LONG);
    assertThat(answer).isEqualTo("read");
    ReaderPools.idleIs(pool, 1);
  }
}
