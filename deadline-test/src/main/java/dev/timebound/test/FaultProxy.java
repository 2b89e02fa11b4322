package dev.timebound.test;

import io.netty.channel.ChannelHandlerContext;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A TCP proxy on this machine that makes a network's faults on command: stalls, latency, slowness,
 * resets, refusals, silence.
 *
 * <p>Put it between a client and a server and point the client at {@link #hostAndPort()}:
 *
 * <pre>{@code
 * try (FaultProxy proxy = FaultProxy.to("localhost", 5432)) {
 *   connect(proxy.hostAndPort());
 *   proxy.freezeEstablished();  // what is connected now stalls, both ways; new connections work
 *   ...
 *   proxy.thaw();               // nothing was lost
 * }
 * }</pre>
 *
 * <p>Every fault can be made and undone at any time, and they add up: {@link #heal()} undoes all. A
 * stalled connection is not read from, so the sender's TCP window fills as it would on a dead wire,
 * and memory stays bounded. Bytes are never lost, doubled or put out of order, save on a connection
 * that was {@link #cut()} or hung up.
 *
 * <p>All methods may be called from any thread. Faults are in effect when the method returns; on a
 * thread that may not block (an event loop, a Reactor worker) {@link #refuse()}, {@link #accept()}
 * and {@link #close()} are refused by an IllegalStateException and the others take effect soon
 * after they return. One thread does all the work; it is a daemon.
 */
public final class FaultProxy implements AutoCloseable {
  /** What becomes of a connection that is made now. */
  private enum Door {
    OPEN,
    FROZEN,
    SILENT,
    RESET,
    HANG_UP
  }

  private final ProxySockets sockets;
  private final Impairments impairments = new Impairments();
  private final Map<Long, Relay> relays = new ConcurrentSkipListMap<>();
  private final AtomicLong accepted = new AtomicLong();
  private final AtomicLong bytesToServer = new AtomicLong();
  private final AtomicLong bytesToClient = new AtomicLong();
  private final AtomicLong roundTrips = new AtomicLong();

  private Door door = Door.OPEN;
  private boolean closed;

  private FaultProxy(InetSocketAddress server) {
    this.sockets = new ProxySockets(server, this::arrived);
  }

  /**
   * Starts a proxy to that server, on a free port of the loopback address. The server need not be
   * up yet: a connection that cannot be passed on is reset.
   *
   * @throws IllegalArgumentException where the host cannot be resolved
   */
  public static FaultProxy to(String host, int port) {
    InetSocketAddress server = new InetSocketAddress(host, port);
    if (server.isUnresolved()) {
      throw new IllegalArgumentException("host: " + host + " (expected: a name that resolves)");
    }
    return new FaultProxy(server);
  }

  /** The port it listens on; the same for its whole life. */
  public int port() {
    return sockets.port();
  }

  /** The address to point a client at: {@code 127.0.0.1:port}. */
  public String hostAndPort() {
    return "127.0.0.1:" + port();
  }

  // ---- stalls

  /**
   * Stalls every connection that is open now, both ways; the sockets stay open. Connections made
   * later work.
   */
  public void freezeEstablished() {
    onLoop(() -> relays.values().forEach(relay -> relay.freezeNow(true)));
  }

  /**
   * Stalls the one open connection that moved the most bytes in about the last second, and returns
   * it.
   *
   * @throws IllegalStateException where no connection is {@link ProxyConnection.State#OPEN}
   */
  public ProxyConnection freezeBusiest() {
    ProxyConnection busiest =
        connections().stream()
            .filter(connection -> connection.state() == ProxyConnection.State.OPEN)
            .max(Comparator.comparingLong(ProxyConnection::recentBytes))
            .orElseThrow(() -> new IllegalStateException("no connection is open through " + this));
    busiest.freeze();
    return busiest;
  }

  /**
   * Stalls every connection that is open now and every one made later: they are accepted, and
   * nothing comes of them.
   */
  public void freezeAll() {
    onLoop(
        () -> {
          door = Door.FROZEN;
          relays.values().forEach(relay -> relay.freezeNow(true));
        });
  }

  /**
   * Ends every stall. What was held is passed on first, in order. New connections work again if
   * {@link #freezeAll()} stalled them.
   */
  public void thaw() {
    onLoop(
        () -> {
          if (door == Door.FROZEN) {
            door = Door.OPEN;
          }
          relays.values().forEach(relay -> relay.freezeNow(false));
        });
  }

  // ---- latency and slowness

  /**
   * Makes everything take that long in EACH direction, so that a round trip takes twice as long
   * more. Any number of bytes are under way together (64 MiB a direction and connection):
   * throughput is not reduced. Order is kept where the delay changes. The making of the TCP
   * connection itself is not delayed. Zero ends it.
   */
  public void delay(Duration oneWay) {
    if (oneWay.isNegative() || oneWay.compareTo(Duration.ofHours(1)) > 0) {
      throw new IllegalArgumentException("delay: " + oneWay + " (expected: from 0 to 1 h)");
    }
    impair(() -> impairments.delayNanos = oneWay.toNanos());
  }

  /** Passes on at most that many bytes a second in each direction of each connection, evenly. */
  public void trickle(long bytesPerSecond) {
    if (bytesPerSecond <= 0) {
      throw new IllegalArgumentException("trickle: " + bytesPerSecond + " (expected: > 0)");
    }
    impair(() -> impairments.bytesPerSecond = bytesPerSecond);
  }

  /** Ends {@link #trickle(long)}. */
  public void fullSpeed() {
    impair(() -> impairments.bytesPerSecond = 0);
  }

  // ---- ends

  /** Resets every open connection (TCP RST) on both sides; what was under way is lost. */
  public void cut() {
    onLoop(() -> List.copyOf(relays.values()).forEach(relay -> relay.end(Pipe.End.RESET)));
  }

  /** Closes every open connection in order (TCP FIN) on both sides; what was still held is lost. */
  public void hangUp() {
    onLoop(() -> List.copyOf(relays.values()).forEach(relay -> relay.end(Pipe.End.FIN)));
  }

  // ---- new connections

  /** Closes the port: a new connection is refused. Those that are open go on. */
  public synchronized void refuse() {
    mayBlock("refuse");
    sockets.refuse();
  }

  /** A new connection is accepted and reset at once. Those that are open go on. */
  public void acceptAndReset() {
    door(Door.RESET);
  }

  /**
   * A new connection is accepted and closed in order (TCP FIN) at once, as by a server that is
   * full. Those that are open go on.
   */
  public void acceptAndHangUp() {
    door(Door.HANG_UP);
  }

  /**
   * A new connection is accepted and read from, and never answered: it stays like that, also after
   * {@link #accept()}.
   */
  public void acceptAndSayNothing() {
    door(Door.SILENT);
  }

  /**
   * A new connection works, whatever was ordered before.
   *
   * @throws RuntimeException where the port was closed by {@link #refuse()} and cannot be had again
   */
  public void accept() {
    door(Door.OPEN);
  }

  /**
   * Undoes every fault: thaws, ends delay and trickle, accepts. Connections that ended stay ended,
   * silent ones stay silent.
   */
  public void heal() {
    impair(
        () -> {
          impairments.delayNanos = 0;
          impairments.bytesPerSecond = 0;
        });
    thaw();
    accept();
  }

  // ---- what can be seen

  /** The connections that are open, in the order in which they were accepted. */
  public List<ProxyConnection> connections() {
    return List.copyOf(relays.values());
  }

  /**
   * How many connections were accepted, ever; those that were ended at once or never answered count
   * too.
   */
  public long accepted() {
    return accepted.get();
  }

  /** Sockets open now towards clients. */
  public int openClientSockets() {
    return sockets.openToClients();
  }

  /** Sockets open now towards the server. */
  public int openServerSockets() {
    return sockets.openToServer();
  }

  /** Bytes passed on to the server, over all connections, ended ones too. */
  public long bytesToServer() {
    return bytesToServer.get();
  }

  /** Bytes passed on to clients, over all connections, ended ones too. */
  public long bytesToClient() {
    return bytesToClient.get();
  }

  /** {@link ProxyConnection#roundTrips()} over all connections, ended ones too. */
  public long roundTrips() {
    return roundTrips.get();
  }

  /**
   * Closes the port and every connection; when it returns no socket and no thread of it is left.
   * Closing twice does nothing.
   */
  @Override
  public synchronized void close() {
    mayBlock("close");
    if (closed) {
      return;
    }
    sockets.refuse();
    hangUp();
    closed = true;
    sockets.close();
  }

  @Override
  public String toString() {
    return "FaultProxy " + hostAndPort() + " to " + sockets.server() + " " + relays.values();
  }

  // ---- inside

  Impairments impairments() {
    return impairments;
  }

  void movedToServer(long bytes) {
    bytesToServer.lazySet(bytesToServer.get() + bytes);
  }

  void movedToClient(long bytes) {
    bytesToClient.lazySet(bytesToClient.get() + bytes);
  }

  void roundTrip() {
    roundTrips.lazySet(roundTrips.get() + 1);
  }

  void ended(Relay relay) {
    relays.remove(relay.id());
  }

  void onLoop(Runnable change) {
    sockets.onLoop(change);
  }

  /** A client has connected: what becomes of it. */
  private void arrived(ChannelHandlerContext client) {
    long id = accepted.incrementAndGet();
    if (door == Door.RESET) {
      Pipe.reset(client);
      return;
    }
    if (door == Door.HANG_UP) {
      client.close();
      return;
    }
    Relay relay = new Relay(this, id, client);
    relays.put(id, relay);
    sockets.read(client, relay.clientReader());
    if (door == Door.SILENT) {
      relay.silence();
    } else {
      relay.freezeNow(door == Door.FROZEN);
      sockets.connectToServer(
          server -> {
            sockets.read(server, relay.serverReader());
            relay.connected(server);
          },
          () -> relay.end(Pipe.End.RESET));
    }
  }

  private void impair(Runnable change) {
    onLoop(
        () -> {
          change.run();
          relays.values().forEach(Relay::pump);
        });
  }

  private synchronized void door(Door next) {
    onLoop(() -> door = next);
    if (!sockets.isListening() && !closed) {
      mayBlock("accept");
      sockets.listenAgain();
    }
  }

  private void mayBlock(String what) {
    if (sockets.mayNotBlockHere()) {
      throw new IllegalStateException(
          what
              + " waits and was called on a thread that may not: "
              + Thread.currentThread().getName());
    }
  }
}
