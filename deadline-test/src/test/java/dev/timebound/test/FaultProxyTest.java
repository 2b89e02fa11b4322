package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

@Timeout(120)
class FaultProxyTest {
  private EchoServer server = EchoServer.start();
  private FaultProxy proxy = FaultProxy.to("localhost", server.port());
  private final List<Socket> clients = new ArrayList<>();

  @BeforeEach
  void noneLeftOfTheLast() {
    eventually("no thread but this proxy's", () -> proxyThreads().size() == 1);
  }

  @AfterEach
  void nothingIsLeft() throws IOException {
    proxy.close();
    assertThat(proxy.openClientSockets()).isZero();
    assertThat(proxy.openServerSockets()).isZero();
    assertThat(proxy.connections()).isEmpty();
    eventually("no thread is left", () -> proxyThreads().isEmpty());
    for (Socket client : clients) {
      client.close();
    }
    server.close();
  }

  @Nested
  class Passing {
    @Test
    @DisplayName("what is sent comes through unchanged, in both directions, and is counted")
    void unchanged() throws Exception {
      byte[] data = random(8 << 20);
      Socket client = connect();
      CompletableFuture<Void> sent = sendAsync(client, data);
      assertThat(client.getInputStream().readNBytes(data.length)).isEqualTo(data);
      sent.get();
      assertThat(proxy.bytesToServer()).isEqualTo(data.length);
      assertThat(proxy.bytesToClient()).isEqualTo(data.length);
    }

    @Test
    @DisplayName(
        "round trips, connections and sockets are counted, also after the connection ended")
    void counts() throws Exception {
      Socket one = connect();
      Socket two = connect();
      for (int i = 0; i < 10; i++) {
        ping(one);
      }
      ping(two);
      assertThat(proxy.accepted()).isEqualTo(2);
      assertThat(proxy.openClientSockets()).isEqualTo(2);
      assertThat(proxy.openServerSockets()).isEqualTo(2);
      assertThat(proxy.connections()).hasSize(2);
      ProxyConnection first = connectionOf(one);
      assertThat(first.roundTrips()).isEqualTo(10);
      assertThat(first.bytesToServer()).isEqualTo(10);
      assertThat(first.bytesToClient()).isEqualTo(10);
      assertThat(first.recentBytes()).isLessThanOrEqualTo(20); // less where the machine is slow
      assertThat(first.state()).isEqualTo(ProxyConnection.State.OPEN);
      assertThat(proxy.roundTrips()).isEqualTo(11);

      // what comes unasked is no round trip
      server.sockets.get(0).getOutputStream().write(1);
      assertThat(one.getInputStream().read()).isEqualTo(1);
      assertThat(first.roundTrips()).isEqualTo(10);

      one.close();
      eventually("the closed one is gone", () -> proxy.connections().size() == 1);
      eventually(
          "both its sockets", () -> proxy.openClientSockets() + proxy.openServerSockets() == 2);
      assertThat(first.state()).isEqualTo(ProxyConnection.State.CLOSED);
      assertThat(proxy.roundTrips()).isEqualTo(11);
      assertThat(proxy.bytesToServer()).isEqualTo(11);
      eventually(
          "what was moved lately",
          () -> {
            for (int i = 0; i < 10; i++) {
              unchecked(() -> ping(two));
            }
            return connectionOf(two).recentBytes() >= 20;
          });
    }

    @Test
    @DisplayName("a client that only closed its output still gets the answer")
    void halfClosed() throws Exception {
      byte[] data = random(3 << 20);
      Socket client = connect();
      CompletableFuture<Void> sent = sendAsync(client, data);
      sent.thenRun(() -> unchecked(client::shutdownOutput));
      assertThat(client.getInputStream().readAllBytes()).isEqualTo(data);
      eventually("the end reached the server", () -> server.ends.contains("EOF"));
      eventually(
          "nothing is open", () -> proxy.openServerSockets() + proxy.openClientSockets() == 0);
    }

    @Test
    @DisplayName("a reset by the client is a reset at the server")
    void clientReset() throws Exception {
      Socket client = connect();
      ping(client);
      client.setSoLinger(true, 0);
      client.close();
      eventually("the server sees it", () -> server.ends.contains("Connection reset"));
    }

    @Test
    @DisplayName("a server that is not there resets the client")
    void noServer() throws Exception {
      server.close();
      Socket client = connect();
      assertReset(client);
    }

    @Test
    @DisplayName("it passes on tens of megabytes a second at least")
    void speed() throws Exception {
      byte[] data = random(64 << 20);
      Socket client = connect();
      ping(client);
      long start = System.nanoTime();
      CompletableFuture<Void> sent = sendAsync(client, data);
      client.getInputStream().skipNBytes(data.length);
      sent.get();
      long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      System.out.println(
          "FaultProxy: "
              + 2 * data.length / 1_000 / Math.max(1, millis)
              + " MB/s, both directions together");
      assertThat(millis).isLessThan(60_000);
    }
  }

  @Nested
  class Stalls {
    @Test
    @DisplayName(
        "freezeEstablished stalls what is open, new connections work, thaw brings everything")
    void established() throws Exception {
      Socket old = connect();
      ping(old);
      proxy.freezeEstablished();
      assertThat(connectionOf(old).state()).isEqualTo(ProxyConnection.State.FROZEN);
      old.getOutputStream().write(7);

      Socket fresh = connect();
      for (int i = 0; i < 50; i++) {
        ping(fresh);
      }
      assertThat(server.received).hasValue(51);
      assertThat(old.getInputStream().available()).isZero();
      assertThat(connectionOf(old).bytesToServer()).isEqualTo(1);

      proxy.thaw();
      assertThat(old.getInputStream().read()).isEqualTo(7);
      assertThat(connectionOf(old).state()).isEqualTo(ProxyConnection.State.OPEN);
    }

    @Test
    @DisplayName("an answer under way does not get through a stall either")
    void bothWays() throws Exception {
      Socket old = connect();
      ping(old);
      proxy.freezeEstablished();
      server.sockets.get(0).getOutputStream().write(9);
      Socket fresh = connect();
      for (int i = 0; i < 50; i++) {
        ping(fresh);
      }
      assertThat(old.getInputStream().available()).isZero();
      proxy.thaw();
      assertThat(old.getInputStream().read()).isEqualTo(9);
    }

    @Test
    @DisplayName("bytes already under way inside the proxy do not get through a stall")
    void underWay() throws Exception {
      Socket old = connect();
      ping(old);
      proxy.trickle(10);
      old.getOutputStream().write(new byte[1_000]);
      eventually("some are through", () -> proxy.bytesToServer() > 1);
      proxy.freezeEstablished();
      proxy.fullSpeed();
      long through = proxy.bytesToServer();
      Socket fresh = connect();
      for (int i = 0; i < 50; i++) {
        ping(fresh);
      }
      assertThat(connectionOf(old).bytesToServer()).isEqualTo(through);
      proxy.thaw();
      old.getInputStream().skipNBytes(1_000);
    }

    @Test
    @DisplayName("freezeAll stalls new connections too, until thaw")
    void all() throws Exception {
      Socket old = connect();
      ping(old);
      proxy.freezeAll();
      Socket fresh = connect();
      old.getOutputStream().write(1);
      fresh.getOutputStream().write(2);
      eventually("it is taken", () -> proxy.connections().size() == 2);
      assertSilent(fresh);
      assertThat(server.received).hasValue(1);
      assertThat(connectionOf(fresh).state()).isEqualTo(ProxyConnection.State.FROZEN);
      proxy.thaw();
      assertThat(old.getInputStream().read()).isEqualTo(1);
      assertThat(fresh.getInputStream().read()).isEqualTo(2);
      ping(connect());
    }

    @Test
    @DisplayName("freezeBusiest stalls the one that moved most lately, and no other")
    void busiest() throws Exception {
      Socket quiet = connect();
      Socket busy = connect();
      Socket other = connect();
      ping(quiet);
      for (int i = 0; i < 20; i++) {
        ping(busy);
      }
      ping(other);
      ProxyConnection frozen = proxy.freezeBusiest();
      assertThat(frozen.client().getPort()).isEqualTo(busy.getLocalPort());
      assertThat(frozen.state()).isEqualTo(ProxyConnection.State.FROZEN);
      ping(quiet);
      ping(other);
      // what is frozen is not chosen again
      assertThat(proxy.freezeBusiest().client().getPort()).isNotEqualTo(busy.getLocalPort());
      frozen.thaw();
      ping(busy);
    }

    @Test
    @DisplayName("freezeBusiest says so where nothing is open")
    void noneOpen() {
      assertThatThrownBy(() -> proxy.freezeBusiest())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("no connection");
    }

    @Test
    @DisplayName(
        "a stall fills the sender's TCP window and not the memory; all of it arrives after thaw")
    void windowFills() throws Exception {
      Socket other = connect();
      try (SocketChannel sender =
          SocketChannel.open(new InetSocketAddress("127.0.0.1", proxy.port()))) {
        eventually("it is there", () -> proxy.connections().size() == 2);
        proxy.connections().get(1).freeze();
        sender.configureBlocking(false);
        ByteBuffer block = ByteBuffer.allocate(64 << 10);
        long taken = 0;
        int refused = 0;
        while (refused < 100 && taken < (256L << 20)) {
          block.clear();
          int written = sender.write(block);
          taken += written;
          refused = written == 0 ? refused + 1 : 0;
          if (written == 0) {
            ping(other); // the proxy is alive and would read if it wanted to
          }
        }
        assertThat(taken)
            .as("bytes the kernel took before it refused more")
            .isBetween(64L << 10, 64L << 20);
        assertThat(proxy.connections().get(1).bytesToServer()).isZero();
        long before = server.received.get();
        proxy.thaw();
        long all = taken;
        sender.configureBlocking(true);
        CompletableFuture<Void> drained =
            CompletableFuture.runAsync(
                () -> unchecked(() -> sender.socket().getInputStream().skipNBytes(all)));
        eventually("all arrived", () -> server.received.get() - before == all);
        drained.get();
      }
    }

    @Test
    @DisplayName(
        "megabytes go through freezes, thaws, changing delays and trickles without a byte lost, doubled or moved")
    void exact() throws Exception {
      byte[] data = random(12 << 20);
      Socket client = connect();
      CompletableFuture<Void> sent = sendAsync(client, data);
      CompletableFuture<byte[]> got =
          CompletableFuture.supplyAsync(
              () -> unchecked(() -> client.getInputStream().readNBytes(data.length)));
      Random random = new Random(42);
      long step = data.length / 24;
      for (long mark = step; mark < data.length; mark += step) {
        long reached = mark;
        proxy.heal();
        eventually("it moves on", () -> proxy.bytesToClient() >= reached);
        switch (random.nextInt(4)) {
          case 0 -> proxy.freezeEstablished();
          case 1 -> proxy.delay(Duration.ofMillis(random.nextInt(20)));
          case 2 -> proxy.trickle(1 + random.nextInt(5_000_000));
          default -> {
            proxy.delay(Duration.ofMillis(random.nextInt(10)));
            proxy.trickle(2_000_000);
          }
        }
        if (random.nextBoolean()) {
          ping(pinger());
        }
      }
      proxy.heal();
      sent.get();
      assertThat(got.get()).isEqualTo(data);
    }

    private Socket pinger() throws IOException {
      proxy.thaw();
      return connect();
    }
  }

  @Nested
  class LatencyAndSlowness {
    @Test
    @DisplayName("a delay is taken in each direction")
    void oneWay() throws Exception {
      Socket client = connect();
      ping(client);
      proxy.delay(Duration.ofMillis(60));
      long start = System.nanoTime();
      ping(client);
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(Duration.ofMillis(120));
      proxy.delay(Duration.ZERO);
      ping(client);
    }

    @Test
    @DisplayName("a delay does not reduce throughput: many chunks are under way together")
    void throughput() throws Exception {
      byte[] data = random(24 << 20);
      Socket client = connect();
      proxy.delay(Duration.ofMillis(100));
      long start = System.nanoTime();
      CompletableFuture<Void> sent = sendAsync(client, data);
      assertThat(client.getInputStream().readNBytes(data.length)).isEqualTo(data);
      sent.get();
      // 24 MiB are 384 chunks of 64 KiB at least: one at a time they would take 38 s each way
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isBetween(Duration.ofMillis(200), Duration.ofSeconds(30));
    }

    @Test
    @DisplayName("an end of stream is delayed like the bytes before it and does not overtake them")
    void delayedEnd() throws Exception {
      byte[] data = random(1 << 20);
      Socket client = connect();
      proxy.delay(Duration.ofMillis(50));
      sendAsync(client, data).thenRun(() -> unchecked(client::shutdownOutput));
      assertThat(client.getInputStream().readAllBytes()).isEqualTo(data);
    }

    @Test
    @DisplayName("trickle passes on no more than its rate, and fullSpeed ends it")
    void trickle() throws Exception {
      byte[] data = random(40_000);
      Socket client = connect();
      ping(client);
      proxy.trickle(100_000);
      long start = System.nanoTime();
      CompletableFuture<Void> sent = sendAsync(client, data);
      assertThat(client.getInputStream().readNBytes(data.length)).isEqualTo(data);
      // two slices of a hundredth of a second may leave at once
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(Duration.ofMillis(360));
      sent.get();

      proxy.trickle(1);
      client.getOutputStream().write(random(10_000));
      proxy.fullSpeed();
      client.getInputStream().skipNBytes(10_000);
    }

    @Test
    @DisplayName("settings out of range are refused by name")
    void refused() {
      assertThatThrownBy(() -> proxy.delay(Duration.ofMillis(-1)))
          .hasMessage("delay: PT-0.001S (expected: from 0 to 1 h)");
      assertThatThrownBy(() -> proxy.trickle(0)).hasMessage("trickle: 0 (expected: > 0)");
    }
  }

  @Nested
  class Ends {
    @Test
    @DisplayName("cut resets both sides of every connection")
    void cut() throws Exception {
      Socket client = connect();
      ping(client);
      proxy.cut();
      assertReset(client);
      eventually("the server sees it", () -> server.ends.contains("Connection reset"));
      ping(connect());
    }

    @Test
    @DisplayName("one connection can be cut, frozen or not, and the others go on")
    void cutOne() throws Exception {
      Socket one = connect();
      Socket two = connect();
      ping(one);
      ping(two);
      connectionOf(one).freeze();
      connectionOf(one).cut();
      assertReset(one);
      ping(two);
    }

    @Test
    @DisplayName("hangUp closes in order")
    void hangUp() throws Exception {
      Socket client = connect();
      ping(client);
      proxy.hangUp();
      assertThat(client.getInputStream().read()).isEqualTo(-1);
      eventually("the server sees an end", () -> server.ends.contains("EOF"));
    }

    @Test
    @DisplayName("a client that closes while frozen is not seen by the server until thaw")
    void closeWhileFrozen() throws Exception {
      Socket client = connect();
      ping(client);
      proxy.freezeEstablished();
      client.close();
      Socket other = connect();
      for (int i = 0; i < 50; i++) {
        ping(other);
      }
      assertThat(server.ends).isEmpty();
      assertThat(proxy.openServerSockets()).isEqualTo(2);
      proxy.thaw();
      eventually("the server sees the end", () -> server.ends.contains("EOF"));
      eventually(
          "the proxy too", () -> proxy.openServerSockets() == 1 && proxy.openClientSockets() == 1);
    }

    @Test
    @DisplayName("what a client sent before it closed, all while frozen, arrives after thaw")
    void sendAndCloseWhileFrozen() throws Exception {
      server.close();
      server = EchoServer.sink();
      proxy.close();
      proxy = FaultProxy.to("localhost", server.port());
      byte[] data = random(2 << 20);
      Socket client = connect();
      proxy.freezeAll();
      client.getOutputStream().write(data);
      client.close();
      assertThat(server.received).hasValue(0);
      proxy.thaw();
      eventually("all of it", () -> server.received.get() == data.length);
      eventually("and its end", () -> server.ends.contains("EOF"));
      eventually(
          "nothing is open", () -> proxy.openServerSockets() + proxy.openClientSockets() == 0);
    }

    @Test
    @DisplayName("closing the proxy on a frozen connection ends it; commands after that do nothing")
    void closeFrozen() throws Exception {
      Socket client = connect();
      ping(client);
      ProxyConnection connection = connectionOf(client);
      proxy.freezeAll();
      proxy.close();
      proxy.close();
      assertThat(client.getInputStream().read()).isEqualTo(-1);
      connection.thaw();
      proxy.thaw();
      proxy.heal();
      assertThatThrownBy(() -> connect()).isInstanceOf(ConnectException.class);
    }
  }

  @Nested
  class NewConnections {
    @Test
    @DisplayName("refuse closes the port, what is open goes on, accept opens the same port again")
    void refuse() throws Exception {
      Socket old = connect();
      ping(old);
      for (int i = 0; i < 3; i++) {
        proxy.refuse();
        assertThatThrownBy(() -> connect()).isInstanceOf(ConnectException.class);
        ping(old);
        proxy.accept();
        ping(connect());
        ping(old);
      }
    }

    @Test
    @DisplayName("acceptAndReset resets a new connection; what is open goes on")
    void reset() throws Exception {
      Socket old = connect();
      ping(old);
      proxy.acceptAndReset();
      assertReset(connect());
      ping(old);
      assertThat(proxy.accepted()).isEqualTo(2);
      proxy.heal();
      ping(connect());
    }

    @Test
    @DisplayName("acceptAndHangUp ends a new connection in order; what is open goes on")
    void hangUpAtOnce() throws Exception {
      Socket old = connect();
      ping(old);
      proxy.acceptAndHangUp();
      assertThat(connect().getInputStream().read()).isEqualTo(-1);
      ping(old);
      assertThat(proxy.accepted()).isEqualTo(2);
      assertThat(server.sockets).hasSize(1);
      proxy.heal();
      ping(connect());
    }

    @Test
    @DisplayName("acceptAndSayNothing takes a connection and its bytes, and never answers")
    void sayNothing() throws Exception {
      proxy.acceptAndSayNothing();
      Socket client = connect();
      client.getOutputStream().write(random(1 << 20));
      eventually("it is taken", () -> proxy.connections().size() == 1);
      assertSilent(client);
      assertThat(connectionOf(client).state()).isEqualTo(ProxyConnection.State.SILENT);
      assertThat(server.sockets).isEmpty();
      assertThat(proxy.openServerSockets()).isZero();
      proxy.heal();
      ping(connect());
      assertSilent(client);
      client.close();
      eventually("it is gone", () -> proxy.connections().size() == 1);
    }
  }

  @Nested
  class Threads {
    @Test
    @DisplayName(
        "a fault may be ordered from a thread that may not block; what must wait is refused there")
    void nonBlocking() throws Exception {
      Socket client = connect();
      ping(client);
      Mono.fromRunnable(() -> proxy.freezeEstablished()).subscribeOn(Schedulers.parallel()).block();
      eventually(
          "it is frozen", () -> connectionOf(client).state() == ProxyConnection.State.FROZEN);
      assertThatThrownBy(
              () ->
                  Mono.fromRunnable(() -> proxy.close()).subscribeOn(Schedulers.parallel()).block())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("close waits");
    }
  }

  // ---- helpers

  private Socket connect() throws IOException {
    Socket socket = new Socket("127.0.0.1", proxy.port());
    socket.setTcpNoDelay(true);
    socket.setSoTimeout(30_000);
    clients.add(socket);
    return socket;
  }

  private static void ping(Socket socket) throws IOException {
    socket.getOutputStream().write(5);
    int answer = socket.getInputStream().read();
    if (answer != 5) {
      throw new EOFException("answer " + answer);
    }
  }

  private ProxyConnection connectionOf(Socket socket) {
    return proxy.connections().stream()
        .filter(c -> c.client().getPort() == socket.getLocalPort())
        .findAny()
        .orElseThrow();
  }

  private static void assertReset(Socket socket) {
    assertThatThrownBy(() -> socket.getInputStream().read())
        .isInstanceOf(SocketException.class)
        .hasMessage("Connection reset");
  }

  /**
   * Nothing comes for a while: the one place where a test has to wait for something not to happen.
   */
  private static void assertSilent(Socket socket) throws IOException {
    socket.setSoTimeout(150);
    assertThatThrownBy(() -> socket.getInputStream().read())
        .isInstanceOf(SocketTimeoutException.class);
    socket.setSoTimeout(30_000);
  }

  private static CompletableFuture<Void> sendAsync(Socket socket, byte[] data) {
    return CompletableFuture.runAsync(() -> unchecked(() -> socket.getOutputStream().write(data)));
  }

  private static byte[] random(int size) {
    byte[] data = new byte[size];
    new Random(size).nextBytes(data);
    return data;
  }

  private static List<String> proxyThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(Thread::isAlive)
        .map(Thread::getName)
        .filter(n -> n.startsWith("timebound-proxy"))
        .toList();
  }

  private interface Work {
    void run() throws IOException;
  }

  private interface Call<T> {
    T run() throws IOException;
  }

  private static void unchecked(Work work) {
    try {
      work.run();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static <T> T unchecked(Call<T> work) {
    try {
      return work.run();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }
}
