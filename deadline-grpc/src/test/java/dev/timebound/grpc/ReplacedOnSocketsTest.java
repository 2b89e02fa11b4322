package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.WirePool.Read;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedCall;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Channels replaced behind real connections. */
class ReplacedOnSocketsTest {
  private static final Duration PATIENCE = Duration.ofSeconds(1);

  private static WirePool pool(
      ScriptedBigtable server,
      ConnectionLoops loops,
      Function<ConnectionWatch, ManagedChannel> channels) {
    return new WirePool(
        server,
        loops,
        channels,
        settings ->
            settings.fixedChannels(3).connectTimeout(PATIENCE).warmTimeout(Duration.ofMillis(200)));
  }

  /** The first channel goes to that port, the rest to the server. */
  private static WirePool firstTo(int port, ScriptedBigtable server, AtomicBoolean mended) {
    ConnectionLoops loops = ConnectionLoops.create("timebound-test-io", 2);
    AtomicInteger made = new AtomicInteger();
    return pool(
        server,
        loops,
        watch ->
            loops
                .bind(
                    WirePool.to(
                        made.incrementAndGet() == 1 || (made.get() > 3 && !mended.get())
                            ? port
                            : server.port()),
                    watch)
                .build());
  }

  private static void isAvoidedAndReplaced(WirePool wire, AtomicBoolean mended) {
    Read waits = wire.readOn(1, 1);
    WirePool.await("it to be avoided", () -> wire.pool.unconnected() == 1);
    for (int i = 0; i < 20; i++) {
      Read read = wire.read(Set.of(), 1, row -> {});
      WirePool.await("a read on the others", read::isOver);
      assertThat(read.completed).isTrue();
    }
    assertThat(waits.isOver()).as("while there is no other").isFalse();
    WirePool.await("attempts that fail", () -> wire.pool.care().failed() >= 2);
    assertThat(wire.names()).contains("wire-1").hasSize(3);
    mended.set(true);
    WirePool.await("its replacement", () -> !wire.names().contains("wire-1"));
    assertThat(wire.names()).hasSize(3);
    assertThat(wire.pool.unconnected()).isZero();
    WirePool.await("its end", waits::isOver);
    assertThat(Status.fromThrowable(waits.error).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
    assertThat(waits.messages).isZero();
  }

  @Test
  @DisplayName(
      "BT-44 a server that accepts and says nothing: the channel is avoided, and replaced when that can be had")
  void saysNothing() {
    ScriptedBigtable server = ScriptedBigtable.start();
    server.readRows().always(Script.start().rows("row").ok());
    AtomicBoolean mended = new AtomicBoolean();
    try (FaultProxy hole = FaultProxy.to("127.0.0.1", server.port())) {
      hole.acceptAndSayNothing();
      try (WirePool wire = firstTo(hole.port(), server, mended)) {
        isAvoidedAndReplaced(wire, mended);
      }
    }
  }

  @Test
  @DisplayName("BT-44 packets that are dropped: the same")
  void dropsPackets() throws IOException {
    ScriptedBigtable server = ScriptedBigtable.start();
    server.readRows().always(Script.start().rows("row").ok());
    AtomicBoolean mended = new AtomicBoolean();
    List<Socket> fill = new ArrayList<>();
    try (ServerSocket hole = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      // Once its queue is full the system answers no further SYN.
      for (boolean full = false; !full; ) {
        Socket socket = new Socket();
        fill.add(socket);
        try {
          socket.connect(
              new InetSocketAddress(InetAddress.getLoopbackAddress(), hole.getLocalPort()), 300);
        } catch (SocketTimeoutException e) {
          full = true;
        }
      }
      try (WirePool wire = firstTo(hole.getLocalPort(), server, mended)) {
        isAvoidedAndReplaced(wire, mended);
      }
    } finally {
      for (Socket socket : fill) {
        socket.close();
      }
    }
  }

  @Test
  @DisplayName(
      "BT-6 under load: each connection answers a probe before its first read, no read fails, no two go at once")
  void refreshedUnderLoad() {
    ScriptedBigtable server = ScriptedBigtable.start();
    server.readRows().always(Script.start().rows("row").pause(Duration.ofMillis(5)).ok());
    try (WirePool wire =
        WirePool.direct(
            server,
            ConnectionLoops.create("timebound-test-io", 2),
            channel -> channel,
            settings -> settings.fixedChannels(3).refreshAfter(Duration.ofMillis(900)))) {
      Read longOne = wire.readOn(1, 0);
      List<Read> reads = new ArrayList<>();
      int most = 0;
      while (wire.pool.care().refreshed() < 8) {
        Read read = wire.read(Set.of(), Long.MAX_VALUE, row -> {});
        WirePool.await("a read", read::isOver);
        reads.add(read);
        most = Math.max(most, wire.names().size());
        assertThat(wire.names()).hasSizeBetween(3, 4);
      }
      assertThat(reads).allMatch(read -> read.completed);
      assertThat(wire.pool.care().failed()).isZero();
      Set<Integer> seen = new HashSet<>();
      for (ScriptedCall call : wire.server.calls()) {
        if (seen.add(call.connection())) {
          assertThat(call.method()).as("first on %s", call.connection()).isEqualTo("PingAndWarm");
        }
      }
      assertThat(seen).hasSizeGreaterThanOrEqualTo(11);
      assertThat(longOne.isOver()).as("the stream on the first one, drained, not cut").isFalse();
      longOne.request(Long.MAX_VALUE);
      WirePool.await("its end", longOne::isOver);
      assertThat(longOne.completed).isTrue();
      // those that drain are gone once they are drained
      WirePool.await("the drained to be gone", () -> wire.server.openConnections() <= 4);
    }
  }
}
