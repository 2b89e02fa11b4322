package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.WirePool.Read;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** The event loops under the channels, and a subscriber that blocks. */
class LoopsTest {

  /** Holds the thread; by bare spinning, since BlockHound ends any wait on an event loop. */
  private static long hold(CountDownLatch until) {
    long spins = 0;
    while (until.getCount() > 0) {
      spins++;
    }
    return spins;
  }

  @Nested
  class OnSockets {
    private final CountDownLatch release = new CountDownLatch(1);

    private WirePool pool(int loops, int channels, boolean onTheLoop) {
      ScriptedBigtable server = ScriptedBigtable.start();
      server.readRows().always(WirePool.steady(Duration.ofSeconds(20)));
      return WirePool.direct(
          server,
          ConnectionLoops.create("timebound-test-io", loops),
          onTheLoop ? NettyChannelBuilder::directExecutor : channel -> channel,
          settings -> settings.fixedChannels(channels));
    }

    @Test
    @DisplayName(
        "BT-43 a subscriber that blocks its event loop: no channel of that loop is taken for stalled, those of others go on")
    void blockedLoop() {
      try (WirePool wire = pool(2, 4, true)) {
        List<Read> reads = new ArrayList<>();
        for (int channel = 2; channel <= 4; channel++) {
          reads.add(wire.readOn(channel, Long.MAX_VALUE));
        }
        reads.forEach(read -> read.awaitMessages(3));
        Read blocking = wire.read(wire.on(1), Long.MAX_VALUE, row -> hold(release));
        blocking.awaitMessages(1);
        int held = reads.get(1).messages;
        // longer than it takes to suspect and probe a connection that stalled, twice over
        int rows = (int) (4 * WirePool.SUSPECT.toMillis() / 10);
        reads.get(0).awaitMessages(reads.get(0).messages + rows);
        reads.get(2).awaitMessages(reads.get(2).messages + rows);
        assertThat(reads.get(1).messages)
            .as("channel 3 shares the loop of channel 1")
            .isLessThan(held + 20);
        assertThat(wire.events).as("suspicions and quarantines").isEmpty();
        release.countDown();
        reads.get(1).awaitMessages(held + 100);
        assertThat(wire.pool.quarantinedCalls()).isZero();
        assertThat(wire.events).isEmpty();
        reads.forEach(Read::cancel);
        blocking.cancel();
      } finally {
        release.countDown();
      }
    }

    @Test
    @DisplayName(
        "BT-43 with the channel's executor between, one that blocks stops no stream of its own channel either")
    void blockedSubscriber() {
      try (WirePool wire = pool(1, 2, false)) {
        Read same = wire.readOn(1, Long.MAX_VALUE);
        Read other = wire.readOn(2, Long.MAX_VALUE);
        Read blocking = wire.read(wire.on(1), Long.MAX_VALUE, row -> hold(release));
        blocking.awaitMessages(1);
        same.awaitMessages(same.messages + 100);
        other.awaitMessages(other.messages + 100);
        assertThat(blocking.messages).isEqualTo(1);
        assertThat(wire.events).isEmpty();
        release.countDown();
        List.of(same, other, blocking).forEach(Read::cancel);
      } finally {
        release.countDown();
      }
    }

    @Test
    @DisplayName("BT-43 a connection that stalls on a loop that runs is found all the same")
    void stallIsFound() {
      try (WirePool wire = pool(1, 2, true)) {
        Read other = wire.readOn(2, Long.MAX_VALUE);
        other.awaitMessages(1);
        int stalled = wire.server.readRows().awaitCall(1).connection();
        wire.server
            .pingAndWarm()
            .answer(call -> call.connection() == stalled ? null : Script.start().silence());
        wire.server.readRows().always(Script.start().silence());
        Read waiting = wire.readOn(1, 1);
        WirePool.await("its end", waiting::isOver);
        assertThat(wire.health(1).status()).isEqualTo(MemberStatus.QUARANTINED);
        assertThat(wire.health(2).status()).isEqualTo(MemberStatus.HEALTHY);
        other.cancel();
      }
    }

    @Test
    @DisplayName(
        "BT-43 loops closed right after their pool, while it connects: every call is told of its end")
    void closedWhileConnecting() {
      for (int round = 0; round < 50; round++) {
        ScriptedBigtable server = ScriptedBigtable.start();
        server.readRows().always(Script.start().silence());
        ConnectionLoops loops = ConnectionLoops.create("timebound-test-io", 2);
        ChannelPool pool =
            ChannelPool.builder(
                    watch -> loops.bind(WirePool.to(server.port()), watch).build(),
                    (channel, headers) -> reactor.core.publisher.Mono.never())
                .fixedChannels(3)
                .warming(false)
                .build();
        List<Read> reads = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
          Read read = new Read(1, row -> {});
          GrpcCalls.serverStreaming(
                  pool,
                  com.google.bigtable.v2.BigtableGrpc.getReadRowsMethod(),
                  io.grpc.CallOptions.DEFAULT,
                  com.google.bigtable.v2.ReadRowsRequest.getDefaultInstance())
              .subscribe(read);
          reads.add(read);
        }
        for (int spin = round * 2000; spin > 0; spin--) {
          Thread.onSpinWait();
        }
        pool.close();
        CountDownLatch ended = new CountDownLatch(1);
        loops.close(ended::countDown);
        WirePool.await(reads, "each read's end in round " + round);
        WirePool.await("the loops' end", () -> ended.getCount() == 0);
        assertThat(pool.isTerminated()).isTrue();
        server.close();
      }
    }
  }

  @Nested
  class Watch {
    private final AtomicLong clock = new AtomicLong();
    private final ArrayDeque<Runnable> loop = new ArrayDeque<>();
    private final LoopWatch watch = new LoopWatch(clock::get, 100);

    private void runLoop() {
      while (!loop.isEmpty()) {
        loop.poll().run();
      }
    }

    @Test
    @DisplayName("BT-43 nothing known of the loop, or a loop that has ended: it counts as running")
    void unknown() {
      assertThat(watch.runs()).isTrue();
      watch.on(
          task -> {
            throw new RejectedExecutionException();
          });
      clock.addAndGet(1000);
      assertThat(watch.runs()).isTrue();
      clock.addAndGet(1000);
      assertThat(watch.runs()).isTrue();
    }

    @Test
    @DisplayName(
        "BT-43 one no-op at a time, and one that comes back in time says that the loop runs")
    void runs() {
      watch.on(loop::add);
      for (int i = 0; i < 20; i++) {
        assertThat(watch.runs()).isTrue();
        assertThat(watch.runs()).isTrue();
        assertThat(loop).hasSize(1);
        clock.addAndGet(90);
        runLoop();
      }
    }

    @Test
    @DisplayName(
        "BT-43 one that does not come back says that it does not, and for a while after it has, too")
    void blocked() {
      watch.on(loop::add);
      assertThat(watch.runs()).isTrue();
      clock.addAndGet(101);
      assertThat(watch.runs()).isFalse();
      clock.addAndGet(5000);
      assertThat(watch.runs()).isFalse();
      runLoop();
      assertThat(watch.runs()).as("what lay in the socket is unread still").isFalse();
      clock.addAndGet(99);
      runLoop();
      assertThat(watch.runs()).isFalse();
      clock.addAndGet(1);
      runLoop();
      assertThat(watch.runs()).isTrue();
    }
  }
}
