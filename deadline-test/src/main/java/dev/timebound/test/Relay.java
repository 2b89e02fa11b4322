package dev.timebound.test;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.EventLoop;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * One connection through the proxy: two sockets and a {@link Pipe} each way. Its state is the event
 * loop's, its counts are read anywhere.
 */
final class Relay implements ProxyConnection {
  // Twice a second: "lately" is the half second under way and the one before it.
  private static final long RECENT_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private final FaultProxy proxy;
  private final long id;
  private final EventLoop loop;
  private final ChannelHandlerContext clientSide;
  private final InetSocketAddress client;
  private final Pipe toServer;
  private final Pipe toClient;
  private final AtomicLong bytesToServer = new AtomicLong();
  private final AtomicLong bytesToClient = new AtomicLong();
  private final AtomicLong roundTrips = new AtomicLong();

  private volatile State state = State.CONNECTING;
  private volatile long recentSince;
  private volatile long recentBefore;
  private volatile long recentNow;
  private @Nullable ChannelHandlerContext serverSide;
  private boolean connected;
  private boolean frozen;
  private boolean clientTurn = true;
  private int delivered;

  Relay(FaultProxy proxy, long id, ChannelHandlerContext clientSide) {
    this.proxy = proxy;
    this.id = id;
    this.clientSide = clientSide;
    this.loop = clientSide.channel().eventLoop();
    this.client = (InetSocketAddress) clientSide.channel().remoteAddress();
    this.toServer = new Pipe(loop, proxy.impairments(), this::movedToServer, this::streamDelivered);
    this.toClient = new Pipe(loop, proxy.impairments(), this::movedToClient, this::streamDelivered);
  }

  // ---- what the proxy does with it, on the loop

  /** Never answers and never connects; what the client sends is read and dropped. */
  void silence() {
    state = State.SILENT;
    clientSide.channel().config().setAutoRead(true);
  }

  void connected(ChannelHandlerContext server) {
    serverSide = server;
    if (state == State.CLOSED) {
      Pipe.reset(server);
      return;
    }
    connected = true;
    state = frozen ? State.FROZEN : State.OPEN;
    toServer.connect(clientSide, server);
    toClient.connect(server, clientSide);
  }

  void freezeNow(boolean freeze) {
    if (state == State.CLOSED || state == State.SILENT) {
      return;
    }
    frozen = freeze;
    state = freeze ? State.FROZEN : connected ? State.OPEN : State.CONNECTING;
    toServer.freeze(freeze);
    toClient.freeze(freeze);
  }

  void pump() {
    toServer.pump();
    toClient.pump();
  }

  void end(Pipe.End how) {
    if (state == State.CLOSED) {
      return;
    }
    state = State.CLOSED;
    toServer.close();
    toClient.close();
    proxy.ended(this);
    end(clientSide, how);
    if (serverSide != null) {
      end(serverSide, how);
    }
  }

  private static void end(ChannelHandlerContext socket, Pipe.End how) {
    if (how == Pipe.End.RESET) {
      Pipe.reset(socket);
    } else {
      socket.close();
    }
  }

  /** An end was told on. Over when both directions have ended, or there is no one left to tell. */
  private void streamDelivered() {
    delivered++;
    boolean bothGone =
        !clientSide.channel().isActive()
            && (serverSide == null || !serverSide.channel().isActive());
    if (delivered >= 2 || bothGone) {
      end(Pipe.End.FIN);
    }
  }

  private void movedToServer(long bytes) {
    bytesToServer.lazySet(bytesToServer.get() + bytes);
    proxy.movedToServer(bytes);
    clientTurn = true;
    moved(bytes);
  }

  private void movedToClient(long bytes) {
    bytesToClient.lazySet(bytesToClient.get() + bytes);
    proxy.movedToClient(bytes);
    if (clientTurn && bytesToServer.get() > 0) {
      roundTrips.lazySet(roundTrips.get() + 1);
      proxy.roundTrip();
    }
    clientTurn = false;
    moved(bytes);
  }

  private void moved(long bytes) {
    long now = System.nanoTime();
    long since = now - recentSince;
    if (since >= RECENT_NANOS) {
      recentBefore = since < 2 * RECENT_NANOS ? recentNow : 0;
      recentNow = bytes;
      recentSince = now;
    } else {
      recentNow = recentNow + bytes;
    }
  }

  // ---- the sockets

  /** Reads one of the two sockets into the pipe that leads to the other. */
  final class Reader extends ChannelDuplexHandler {
    private final Pipe out;
    private final Pipe in;

    private Reader(Pipe out, Pipe in) {
      this.out = out;
      this.in = in;
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
      ByteBuf bytes = (ByteBuf) message;
      if (state == State.SILENT) {
        bytes.release();
      } else {
        out.received(bytes);
      }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
      out.pump();
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
      in.pump();
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
      if (event == ChannelInputShutdownEvent.INSTANCE) {
        sourceEnded(Pipe.End.FIN);
      } else if (event != ChannelInputShutdownReadComplete.INSTANCE) {
        ctx.fireUserEventTriggered(event);
      }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
      // Told first: closing a socket that allows half closure can look like an end in order.
      sourceEnded(Pipe.End.RESET);
      ctx.close();
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
      // An end in order came as an input shutdown before; a socket that is simply gone was reset,
      // or could no longer be written to.
      sourceEnded(Pipe.End.RESET);
      ctx.fireChannelInactive();
    }

    private void sourceEnded(Pipe.End how) {
      if (state == State.SILENT || (!connected && how == Pipe.End.RESET)) {
        end(how);
      } else {
        out.receivedEnd(how);
      }
    }
  }

  Reader clientReader() {
    return new Reader(toServer, toClient);
  }

  Reader serverReader() {
    return new Reader(toClient, toServer);
  }

  // ---- what a test sees

  @Override
  public long id() {
    return id;
  }

  @Override
  public InetSocketAddress client() {
    return client;
  }

  @Override
  public State state() {
    return state;
  }

  @Override
  public long bytesToServer() {
    return bytesToServer.get();
  }

  @Override
  public long bytesToClient() {
    return bytesToClient.get();
  }

  @Override
  public long recentBytes() {
    long since = System.nanoTime() - recentSince;
    return since < RECENT_NANOS
        ? recentBefore + recentNow
        : since < 2 * RECENT_NANOS ? recentNow : 0;
  }

  @Override
  public long roundTrips() {
    return roundTrips.get();
  }

  @Override
  public void freeze() {
    proxy.onLoop(() -> freezeNow(true));
  }

  @Override
  public void thaw() {
    proxy.onLoop(() -> freezeNow(false));
  }

  @Override
  public void cut() {
    proxy.onLoop(() -> end(Pipe.End.RESET));
  }

  @Override
  public void hangUp() {
    proxy.onLoop(() -> end(Pipe.End.FIN));
  }

  @Override
  public String toString() {
    return "#"
        + id
        + " "
        + state
        + " "
        + client.getPort()
        + " >"
        + bytesToServer()
        + " <"
        + bytesToClient();
  }
}
