package dev.timebound.test;

import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.resolver.NoopAddressResolverGroup;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Schedulers;
import reactor.netty.DisposableServer;
import reactor.netty.resources.LoopResources;
import reactor.netty.tcp.TcpClient;
import reactor.netty.tcp.TcpServer;

/** The proxy's event loop, its port and how its sockets are made. It knows nothing of faults. */
final class ProxySockets {
  private static final Duration PATIENCE = Duration.ofSeconds(10);
  // epoll reports a peer's end where nothing is read, too, and reads for it; a stall must not look
  private static final boolean NATIVE = false;
  private static final String FIRST = "timebound.first";

  private final InetSocketAddress server;
  private final Consumer<ChannelHandlerContext> arrived;
  private final LoopResources loops;
  private final EventLoop loop;
  private final AtomicInteger toClients = new AtomicInteger();
  private final AtomicInteger toServer = new AtomicInteger();
  private final int port;
  private @Nullable DisposableServer listener;

  /**
   * @param arrived told, on the event loop, of every connection that is made to the port; nothing
   *     is read from it until told to
   */
  ProxySockets(InetSocketAddress server, Consumer<ChannelHandlerContext> arrived) {
    this.server = server;
    this.arrived = arrived;
    this.loops = LoopResources.create("timebound-proxy", 1, true);
    this.loop = loops.onServer(NATIVE).next();
    DisposableServer bound = listen(0);
    this.listener = bound;
    this.port = bound.port();
  }

  InetSocketAddress server() {
    return server;
  }

  int port() {
    return port;
  }

  int openToClients() {
    return toClients.get();
  }

  int openToServer() {
    return toServer.get();
  }

  boolean isListening() {
    return listener != null;
  }

  void listenAgain() {
    listener = listen(port);
  }

  void refuse() {
    DisposableServer open = listener;
    listener = null;
    if (open != null) {
      open.disposeNow(PATIENCE);
      awaitRefusal();
    }
  }

  void close() {
    loops.disposeLater(Duration.ZERO, PATIENCE).block(PATIENCE);
  }

  /** Puts a reader on a socket that {@code arrived} or {@link #connectToServer} gave. */
  void read(ChannelHandlerContext socket, ChannelHandler reader) {
    socket.pipeline().addAfter(FIRST, FIRST + ".reader", reader);
  }

  /** Connects to the server; one of the two is called, on the event loop. */
  void connectToServer(Consumer<ChannelHandlerContext> connected, Runnable failed) {
    TcpClient.newConnection()
        .runOn(loops, NATIVE)
        .resolver(NoopAddressResolverGroup.INSTANCE)
        .remoteAddress(() -> server)
        .option(ChannelOption.AUTO_READ, false)
        .option(ChannelOption.ALLOW_HALF_CLOSURE, true)
        .doOnChannelInit(
            (observer, channel, address) ->
                channel.pipeline().addFirst(FIRST, new First(toServer, connected)))
        .connect()
        .subscribe(any -> {}, any -> failed.run());
  }

  /** Runs it on the event loop, and waits for that where this thread may wait. */
  void onLoop(Runnable change) {
    if (loop.inEventLoop()) {
      change.run();
      return;
    }
    if (loop.isShuttingDown()) {
      return; // closed: there is no connection left to change
    }
    CompletableFuture<Void> done = CompletableFuture.runAsync(change, loop);
    if (mayNotBlockHere()) {
      return;
    }
    try {
      done.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException e) {
      throw new IllegalStateException("the proxy's event loop did not make the change", e);
    }
  }

  boolean mayNotBlockHere() {
    return loop.inEventLoop() || Schedulers.isInNonBlockingThread();
  }

  private DisposableServer listen(int onPort) {
    return TcpServer.create()
        .runOn(loops, NATIVE)
        .bindAddress(() -> new InetSocketAddress("127.0.0.1", onPort))
        .option(ChannelOption.SO_BACKLOG, 1024)
        .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
        .doOnChannelInit(
            (observer, channel, address) ->
                channel.pipeline().addFirst(FIRST, new First(toClients, arrived)))
        .bindNow(PATIENCE);
  }

  /** The kernel's socket is closed by the loop's next select, a little after the channel. */
  private void awaitRefusal() {
    long giveUp = System.nanoTime() + PATIENCE.toNanos();
    while (System.nanoTime() < giveUp) {
      try (Socket socket = new Socket("127.0.0.1", port)) {
        socket.setSoLinger(true, 0);
      } catch (ConnectException refused) {
        return;
      } catch (IOException closing) {
        Thread.onSpinWait();
      }
    }
    throw new IllegalStateException("port " + port + " still accepts after " + PATIENCE);
  }

  /**
   * First in a socket's pipeline: counts it, and hands it over once it is connected. Writes to it
   * go straight out.
   */
  private static final class First extends ChannelInboundHandlerAdapter {
    private final AtomicInteger open;
    private final Consumer<ChannelHandlerContext> connected;

    First(AtomicInteger open, Consumer<ChannelHandlerContext> connected) {
      this.open = open;
      this.connected = connected;
    }

    @Override
    public void channelActive(ChannelHandlerContext ctx) {
      open.incrementAndGet();
      ctx.channel().closeFuture().addListener(any -> open.decrementAndGet());
      ctx.fireChannelActive();
      connected.accept(ctx);
    }
  }
}
