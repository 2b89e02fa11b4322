package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import dev.timebound.test.PostgresServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

@ExtendWith(PostgresReplicaSetExtension.class)
class PoolDialTest {
  private static final Duration SHORT = Duration.ofMillis(150);
  private static final Duration LONG = Duration.ofSeconds(20);

  private final ReaderPools pools = new ReaderPools();
  private PostgresServer standby;
  private FaultProxy proxy;

  @BeforeEach
  void server(PostgresReplicaSet postgres) {
    standby = postgres.standby();
    proxy = standby.proxy();
  }

  @AfterEach
  void nothingIsLeft() {
    pools.closeWith(standby);
    ReaderPools.until(
        "no socket at the proxy",
        () -> proxy.openClientSockets() == 0,
        () -> proxy.connections().toString());
    proxy.close();
  }

  /** How an acquire ended: its lease, or why it was refused. */
  private static @Nullable Object outcome(Mono<Lease> acquire) {
    return acquire
        .cast(Object.class)
        .onErrorResume(RefusedException.class, e -> Mono.just(e.reason()))
        .block(LONG);
  }

  @Nested
  class ACallerThatStopsWaiting {
    @Test
    @DisplayName("PG-4 abandons no dial by its timeout: the dial joins the pool")
    void timeout() {
      proxy.delay(Duration.ofMillis(60));
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 3).acquire(SHORT));
      assertThat(outcome(pool.acquire(LONG))).isEqualTo(RouteReason.READER_ACQUIRE_TIMEOUT);
      assertThat(pool.allocated()).isEqualTo(1);
      assertThat(pool.pending()).isZero();
      ReaderPools.idleIs(pool, 1);
      assertThat(proxy.accepted()).isEqualTo(1);
      assertThat(pools.counts.all()).isEqualTo(java.util.Map.of("dial ok", 1));
    }

    @Test
    @DisplayName("PG-4 abandons no dial by its budget, where that is the shorter")
    void budget() {
      proxy.delay(Duration.ofMillis(30));
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 3).acquire(LONG));
      assertThat(outcome(pool.acquire(Duration.ofMillis(20))))
          .isEqualTo(RouteReason.READER_ACQUIRE_TIMEOUT);
      assertThat(outcome(pool.acquire(Duration.ZERO)))
          .isEqualTo(RouteReason.READER_ACQUIRE_TIMEOUT);
      ReaderPools.until(
          "both dials have joined", () -> pool.idle() >= 1, () -> pools.counts.all().toString());
      assertThat(pools.counts.dials("failed")).isZero();
    }

    @Test
    @DisplayName("PG-4 abandons no dial by its cancel")
    void cancel() {
      proxy.delay(Duration.ofMillis(30));
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 3).acquire(LONG));
      Disposable caller = pool.acquire(LONG).subscribe();
      ReaderPools.until("it dials", () -> proxy.accepted() == 1, () -> "it does not");
      caller.dispose();
      assertThat(pool.pending()).isZero();
      ReaderPools.idleIs(pool, 1);
      assertThat(pool.acquired()).isZero();
      assertThat(pools.counts.all()).isEqualTo(java.util.Map.of("dial ok", 1));
    }

    @Test
    @DisplayName("PG-4 breaks no connection that waits idle")
    void idleOnesStay() {
      ReaderPool pool = pools.through(proxy, it -> it.size(2, 2).acquire(SHORT));
      pool.start();
      ReaderPools.idleIs(pool, 2);
      proxy.freezeEstablished();
      long before = proxy.roundTrips();
      // a check before the checkout would overrun here; there is none (PG-3)
      Lease one = ReaderPools.acquire(pool);
      Lease two = ReaderPools.acquire(pool);
      assertThat(proxy.roundTrips()).isEqualTo(before);
      assertThat(outcome(pool.acquire(LONG))).isEqualTo(RouteReason.READER_ACQUIRE_TIMEOUT);
      proxy.thaw();
      one.release();
      two.release();
      ReaderPools.idleIs(pool, 2);
      assertThat(proxy.accepted()).isEqualTo(2);
    }
  }

  @Nested
  class ACallerThatWaits {
    @Test
    @DisplayName("PG-4 is served by a connection that comes back while its dial is slow")
    void servedByAReturn() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 2).acquire(LONG));
      Lease lent = ReaderPools.acquire(pool);
      String pid = ReaderPools.value(lent, "SELECT pg_backend_pid()");
      proxy.acceptAndSayNothing();
      Queue<Lease> second = new ConcurrentLinkedQueue<>();
      pool.acquire(LONG).subscribe(second::add);
      ReaderPools.until("its dial hangs", () -> proxy.accepted() == 2, () -> "it does not dial");
      assertThat(second).isEmpty();
      lent.release();
      ReaderPools.until("a lease", () -> !second.isEmpty(), () -> "none");
      assertThat(ReaderPools.value(second.element(), "SELECT pg_backend_pid()")).isEqualTo(pid);
      // the dial goes on
      assertThat(pool.allocated()).isEqualTo(2);
      second.element().release();
    }

    @Test
    @DisplayName("PG-5 is told at once that the reader's dial failed")
    void refused() {
      proxy.refuse();
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 2).acquire(LONG));
      assertThat(outcome(pool.acquire(LONG))).isEqualTo(RouteReason.READER_DIAL_FAILED);
      assertThat(pools.counts.dials("failed")).isEqualTo(1);
    }

    @Test
    @DisplayName("PG-5 is told at once that the server closed the handshake")
    void hungUp() {
      proxy.acceptAndHangUp();
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 2).acquire(LONG));
      assertThat(outcome(pool.acquire(LONG))).isEqualTo(RouteReason.READER_DIAL_FAILED);
      assertThat(pool.openSockets()).isZero();
    }

    @Test
    @DisplayName("PG-5 with something to hope for one is told for each dial, the others wait on")
    void oneIsTold() {
      VirtualTimeScheduler time = VirtualTimeScheduler.create();
      ReaderPool pool = pools.through(proxy, it -> it.size(0, 2).dial(SHORT).scheduler(time));
      Lease lent = ReaderPools.acquire(pool);
      proxy.acceptAndSayNothing();
      AtomicInteger told = new AtomicInteger();
      Queue<Lease> served = new ConcurrentLinkedQueue<>();
      for (int i = 0; i < 2; i++) {
        pool.acquire(LONG).subscribe(served::add, any -> told.incrementAndGet());
      }
      assertThat(pool.pending()).isEqualTo(2);
      time.advanceTimeBy(SHORT); // there is room for the dial of one of them
      ReaderPools.until("one is told", () -> told.get() > 0, () -> "none is");
      lent.release();
      ReaderPools.until("one is served", () -> !served.isEmpty(), () -> told + " were told");
      assertThat(told).hasValue(1);
      served.forEach(Lease::release);
    }

    @Test
    @DisplayName("PG-5 with nothing to hope for all who wait are told by as many dials as fit")
    void allAreTold() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 3).acquire(LONG));
      proxy.acceptAndSayNothing();
      Queue<Object> ends = new ConcurrentLinkedQueue<>();
      for (int i = 0; i < 100; i++) {
        pool.acquire(LONG).subscribe(ends::add, ends::add);
      }
      ReaderPools.until("three dials", () -> proxy.accepted() == 3, () -> "" + proxy.accepted());
      proxy.refuse();
      proxy.cut();
      ReaderPools.until("all ended", () -> ends.size() == 100, () -> ends.size() + " ended");
      assertThat(ends)
          .allSatisfy(
              end ->
                  assertThat(((RefusedException) end).reason())
                      .isEqualTo(RouteReason.READER_DIAL_FAILED));
      // a dial each would have been a hundred
      assertThat(pools.counts.dials("failed")).isLessThanOrEqualTo(9);
    }

    @Test
    @DisplayName("PG-4 gives nothing of its Context to the dial")
    void context() {
      Queue<Boolean> seen = new ConcurrentLinkedQueue<>();
      ReaderPool pool =
          pools.open(
              standby.host(),
              standby.port(),
              it -> it.size(1, 2).acquire(LONG),
              builder ->
                  builder.username(
                      Mono.deferContextual(
                          context -> {
                            seen.add(context.hasKey("caller"));
                            return Mono.just("postgres");
                          })));
      pool.acquire(LONG)
          .contextWrite(context -> context.put("caller", "me"))
          .doOnNext(Lease::release)
          .block(LONG);
      pool.probe().contextWrite(context -> context.put("caller", "me")).block(LONG);
      assertThat(seen).hasSize(2).containsOnly(false);
    }
  }

  @Nested
  class ADialThatHangs {
    @Test
    @DisplayName("PG-4 has its socket closed at the dial timeout, and its slot is free")
    void guarded() {
      proxy.acceptAndSayNothing();
      ReaderPool pool =
          pools.through(proxy, it -> it.size(1, 1).acquire(SHORT).dial(Duration.ofMillis(400)));
      assertThat(pool.dialHangs()).isFalse();
      assertThat(outcome(pool.acquire(LONG))).isEqualTo(RouteReason.READER_ACQUIRE_TIMEOUT);
      ReaderPools.until(
          "the dial is known to hang, or was closed",
          () -> pool.dialHangs() || pools.counts.dials("timeout") == 1,
          () -> "it is not");
      ReaderPools.until(
          "its socket is closed",
          () -> proxy.openClientSockets() == 0 && pool.openSockets() == 0,
          () -> proxy.connections() + ", " + pool.openSockets() + " open");
      ReaderPools.until(
          "its slot is free",
          () -> pool.allocated() == 0 && pools.counts.dials("timeout") == 1,
          () -> pool.allocated() + " allocated, " + pools.counts.all());
      assertThat(pool.dialHangs()).isFalse();
      proxy.accept();
      // on a busy machine a dial may take longer than a caller waits here
      Eventually.eventually(() -> ReaderPools.acquire(pool).release());
      ReaderPools.idleIs(pool, 1);
    }

    @Test
    @DisplayName("PG-4 PG-30 is known to hang once it takes longer than a caller would wait")
    void hangs() {
      proxy.acceptAndSayNothing();
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 2).acquire(SHORT));
      assertThat(outcome(pool.acquire(LONG))).isEqualTo(RouteReason.READER_ACQUIRE_TIMEOUT);
      ReaderPools.until("it hangs", pool::dialHangs, () -> "it does not");
      proxy.hangUp();
      ReaderPools.until("it does not", () -> !pool.dialHangs(), () -> "it does");
    }

    @Test
    @DisplayName("PG-4 leaves no more sockets than the pool may hold, dial after dial")
    void neverMoreThanTheMaximum() {
      proxy.acceptAndSayNothing();
      ReaderPool pool =
          pools.through(
              proxy,
              it -> it.size(1, 2).acquire(Duration.ofMillis(20)).dial(Duration.ofMillis(60)));
      int most = 0;
      for (int i = 0; i < 200 && pools.counts.dials("timeout") < 8; i++) {
        outcome(pool.acquire(LONG));
        most = Math.max(most, pool.openSockets());
        assertThat(pool.allocated()).isLessThanOrEqualTo(2);
      }
      assertThat(pools.counts.dials("timeout")).isGreaterThanOrEqualTo(8);
      assertThat(most).isBetween(1, 2);
    }
  }

  @Nested
  class ABurst {
    @Test
    @DisplayName("PG-5 dials what the pool may hold; who waits in vain times out alone")
    void burst() {
      proxy.delay(Duration.ofMillis(60));
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 4).acquire(SHORT));
      List<Mono<Object>> all = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        all.add(
            pool.acquire(LONG)
                .cast(Object.class)
                .onErrorResume(RefusedException.class, e -> Mono.just(e.reason())));
      }
      List<Object> ends = reactor.core.publisher.Flux.merge(all).collectList().block(LONG);
      assertThat(ends).hasSize(200).containsOnly(RouteReason.READER_ACQUIRE_TIMEOUT);
      ReaderPools.idleIs(pool, 4);
      assertThat(proxy.accepted()).isEqualTo(4);
      assertThat(standby.sessions(pools.application)).hasSize(4);
      assertThat(pools.counts.all()).isEqualTo(java.util.Map.of("dial ok", 4));
    }

    @Test
    @DisplayName("PG-5 past the pending limit the reason is reader_saturated")
    void saturated() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 1).pending(2).acquire(LONG));
      Lease lent = ReaderPools.acquire(pool);
      Queue<Object> ends = new ConcurrentLinkedQueue<>();
      for (int i = 0; i < 5; i++) {
        pool.acquire(LONG)
            .subscribe(
                lease -> {
                  ends.add("served");
                  lease.release();
                },
                e -> ends.add(((RefusedException) e).reason()));
      }
      assertThat(ends).hasSize(3).containsOnly(RouteReason.READER_SATURATED);
      assertThat(pool.pending()).isEqualTo(2);
      lent.release();
      ReaderPools.until("the two are served", () -> ends.size() == 5, ends::toString);
      assertThat(ends.stream().filter("served"::equals)).hasSize(2);
    }

    @Test
    @DisplayName("PG-5 one for whom a dial is under way is not one that waits for the others")
    void dialsAreNotPending() {
      ReaderPool pool = pools.through(proxy, it -> it.size(1, 3).pending(0).acquire(LONG));
      List<Object> ends =
          reactor.core.publisher.Flux.range(0, 4)
              .flatMap(
                  i ->
                      pool.acquire(LONG)
                          .doOnNext(Lease::release)
                          .map(lease -> (Object) "served")
                          .onErrorResume(RefusedException.class, e -> Mono.just(e.reason())))
              .collectList()
              .block(LONG);
      assertThat(ends)
          .containsExactlyInAnyOrder(RouteReason.READER_SATURATED, "served", "served", "served");
    }
  }
}
