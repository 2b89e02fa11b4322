package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.WirePool.Read;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import io.grpc.ConnectivityState;
import io.grpc.netty.shaded.io.netty.buffer.ByteBufUtil;
import io.grpc.netty.shaded.io.netty.buffer.PooledByteBufAllocator;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.util.ResourceLeakDetector;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** What has come in for a call that nobody reads any more. */
@DisplayName("BT-1 what came in and was never asked for is let go when the caller leaves")
class PooledLeftoversTest {
  private static final int HELD = 100_000;

  private final ResourceLeakDetector.Level before = ResourceLeakDetector.getLevel();
  private final AtomicInteger leaks = new AtomicInteger();
  private final PooledByteBufAllocator memory = new PooledByteBufAllocator(true);
  private final ScriptedBigtable server = ScriptedBigtable.start();
  private final FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());
  private final ConnectionLoops loops = ConnectionLoops.create("timebound-test-io", 1);

  @BeforeEach
  void watchEveryBuffer() {
    ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
    ByteBufUtil.setLeakListener((type, records) -> leaks.incrementAndGet());
  }

  @AfterEach
  void stop() {
    ByteBufUtil.setLeakListener(null);
    ResourceLeakDetector.setLevel(before);
    proxy.close();
    server.close();
  }

  private WirePool pool() {
    return new WirePool(
        server,
        loops,
        watch ->
            loops
                .bind(WirePool.to(proxy.port()).withOption(ChannelOption.ALLOCATOR, memory), watch)
                .build(),
        settings -> settings.fixedChannels(1));
  }

  /** A read that has one message, and for which more has come in. */
  private Read readsOne(WirePool wire) {
    String row = "x".repeat(20_000);
    Script script = Script.start();
    for (int i = 0; i < 30; i++) {
      script = script.rows(row);
    }
    server.readRows().always(script.silence());
    Read read = wire.read(Set.of(), 1, message -> {});
    read.awaitMessages(1);
    WirePool.await("more has come in", () -> memory.pinnedDirectMemory() > HELD);
    return read;
  }

  private void nothingIsHeld() {
    WirePool.await("nothing is held", () -> memory.pinnedDirectMemory() < HELD);
    for (int i = 0; i < 5; i++) {
      System.gc();
      memory.directBuffer(16).release(); // a leak is told of at the next allocation
    }
    assertThat(leaks).hasValue(0);
  }

  @Test
  @DisplayName("BT-1 on a connection that stands")
  void alive() {
    try (WirePool wire = pool()) {
      readsOne(wire).cancel();
      nothingIsHeld();
    }
  }

  @Test
  @DisplayName("BT-1 on a connection that broke, whose calls hear of no cancel")
  void broken() {
    try (WirePool wire = pool()) {
      Read read = readsOne(wire);
      proxy.cut();
      WirePool.await(
          "it is seen", () -> wire.members().get(0).state(false) != ConnectivityState.READY);
      assertThat(memory.pinnedDirectMemory()).isGreaterThan(HELD);
      read.cancel();
      nothingIsHeld();
    }
  }
}
