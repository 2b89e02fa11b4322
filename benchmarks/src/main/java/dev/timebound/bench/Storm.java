package dev.timebound.bench;

import dev.timebound.demo.pg.Ask;
import dev.timebound.demo.pg.ReadWriteClient;
import dev.timebound.demo.pg.Servers;
import dev.timebound.demo.pg.Table;
import dev.timebound.demo.pg.Variant;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Phaser;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * One storm: many reads at once in the moment the reader freezes, a trickle of reads and writes
 * until a second after its thaw. A proxy before the reader counts its connections.
 */
final class Storm {
  private static final int WARM_UP = 3_000;
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final PostgresReplicaSet servers;
  private final FaultProxy proxy;
  private final ReadWriteClient client;
  private final LongAdder errors = new LongAdder();
  private final LongAdder byWriter = new LongAdder();
  private final LongAccumulator slowestRead = new LongAccumulator(Math::max, 0);
  private final LongAccumulator slowestWrite = new LongAccumulator(Math::max, 0);
  private final Phaser underWay = new Phaser(1);
  private long pulse;

  private Storm(PostgresReplicaSet servers, FaultProxy proxy, ReadWriteClient client) {
    this.servers = servers;
    this.proxy = proxy;
    this.client = client;
  }

  /**
   * @param reads at once
   * @param frozen how long
   */
  static Figures of(PostgresReplicaSet servers, Variant variant, int reads, Duration frozen)
      throws Exception {
    servers.primary().execute("UPDATE demo_pulse SET number = 0");
    servers.awaitReplay();
    try (FaultProxy proxy = servers.standby().proxy()) {
      Servers where =
          new Servers(
              servers.primary().port(),
              proxy.port(),
              servers.primary().user(),
              servers.primary().database(),
              "bench-storm");
      try (ReadWriteClient client = variant.connect(where)) {
        return new Storm(servers, proxy, client).run(reads, frozen);
      } finally {
        servers.heal();
      }
    }
  }

  private Figures run(int reads, Duration frozen) throws Exception {
    Flux.range(0, WARM_UP).flatMap(i -> client.read(ask()), 8).blockLast(PATIENCE);
    client.writer().forget();
    long dialsBefore = proxy.accepted();
    int openBefore = proxy.openClientSockets();
    Disposable trickle =
        Flux.interval(Duration.ofMillis(10))
            .onBackpressureDrop()
            .subscribe(
                tick -> {
                  read(() -> {});
                  if (tick % 5 == 0) {
                    write();
                  }
                });
    CountDownLatch first = new CountDownLatch(reads / 10);
    for (int i = 0; i < reads; i++) {
      read(first::countDown);
    }
    first.await(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    servers.standby().freeze();
    TimeUnit.NANOSECONDS.sleep(frozen.toNanos());
    servers.standby().thaw();
    TimeUnit.SECONDS.sleep(1);
    trickle.dispose();
    underWay.awaitAdvanceInterruptibly(underWay.arrive(), PATIENCE.toSeconds(), TimeUnit.SECONDS);
    TimeUnit.SECONDS.sleep(1);
    long dials = proxy.accepted() - dialsBefore;
    return Figures.none()
        .with("max_ms", slowestRead.get() / 1e6)
        .with("write_ms", slowestWrite.get() / 1e6)
        .with("wait_ms", client.writer().worstWaitMillis())
        .with("dials", dials)
        .with("torn_down", openBefore + dials - proxy.openClientSockets())
        .with("by_writer", byWriter.sum())
        .with("errors", errors.sum());
  }

  private static Ask ask() {
    return new Ask(1 + ThreadLocalRandom.current().nextInt(Table.ROWS), 0);
  }

  private void read(Runnable answered) {
    timed(
        client
            .read(ask())
            .doOnNext(
                answer -> {
                  answered.run();
                  if (!answer.byReader()) {
                    byWriter.increment();
                  }
                }),
        slowestRead::accumulate);
  }

  private void write() {
    timed(client.write(ask().id(), ++pulse), slowestWrite::accumulate);
  }

  private void timed(Mono<?> what, LongConsumer took) {
    underWay.register();
    long began = System.nanoTime();
    what.doFinally(
            end -> {
              took.accept(System.nanoTime() - began);
              underWay.arriveAndDeregister();
            })
        .subscribe(done -> {}, e -> errors.increment());
  }
}
