package dev.timebound.cas.kit;

import io.grpc.BindableService;
import io.grpc.Server;
import io.grpc.ServerStreamTracer;
import io.grpc.netty.shaded.io.grpc.netty.GrpcHttp2ConnectionHandler;
import io.grpc.netty.shaded.io.grpc.netty.InternalNettyServerCredentials;
import io.grpc.netty.shaded.io.grpc.netty.InternalProtocolNegotiator;
import io.grpc.netty.shaded.io.grpc.netty.InternalProtocolNegotiators;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.Channel;
import io.grpc.netty.shaded.io.netty.channel.ChannelHandler;
import io.grpc.netty.shaded.io.netty.channel.ChannelHandlerContext;
import io.grpc.netty.shaded.io.netty.channel.ChannelInboundHandlerAdapter;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerSocketChannel;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import io.grpc.netty.shaded.io.netty.util.AsciiString;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** gRPC's server and its threads, from a start to a stop. */
final class CasEngine {
  private static final int PATIENCE_SECONDS = 20;

  private final EventLoopGroup loops = new NioEventLoopGroup(1, threads("scripted-cas-io"));
  private final ExecutorService executor = Executors.newCachedThreadPool(threads("scripted-cas"));
  private final ScheduledExecutorService clock =
      Executors.newSingleThreadScheduledExecutor(threads("scripted-cas-clock"));
  private final Server server;

  CasEngine(
      int port,
      @Nullable SslContext tls,
      int maxMessage,
      int maxStreams,
      BiConsumer<Channel, GrpcHttp2ConnectionHandler> connected,
      ServerStreamTracer.Factory tracers,
      BindableService... services)
      throws IOException {
    NettyServerBuilder builder =
        NettyServerBuilder.forAddress(
                new InetSocketAddress("127.0.0.1", port),
                InternalNettyServerCredentials.create(
                    new Watching(
                        tls == null
                            ? InternalProtocolNegotiators.serverPlaintext()
                            : InternalProtocolNegotiators.serverTls(tls),
                        connected)))
            .bossEventLoopGroup(loops)
            .workerEventLoopGroup(loops)
            .channelType(NioServerSocketChannel.class)
            .executor(executor)
            .maxInboundMessageSize(maxMessage)
            .maxConcurrentCallsPerConnection(maxStreams)
            .permitKeepAliveTime(1, TimeUnit.MILLISECONDS)
            .permitKeepAliveWithoutCalls(true)
            .addStreamTracerFactory(tracers);
    for (BindableService service : services) {
      builder.addService(service);
    }
    try {
      server = builder.build().start();
    } catch (IOException | RuntimeException e) {
      endThreads();
      throw e;
    }
  }

  /** Plain threads, which may block: it is a server that waits on purpose. */
  private static ThreadFactory threads(String name) {
    AtomicInteger made = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, name + "-" + made.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }

  int port() {
    return server.getPort();
  }

  Executor executor() {
    return executor;
  }

  /** Nothing comes of it where the server has stopped meanwhile. */
  void after(Duration delay, Runnable task) {
    try {
      clock.schedule(() -> executor.execute(task), delay.toNanos(), TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException stopped) {
      // its calls have ended
    }
  }

  void stop() {
    server.shutdownNow();
    try {
      if (!server.awaitTermination(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw new IllegalStateException("the scripted store did not stop: " + server);
      }
      endThreads();
      clock.awaitTermination(PATIENCE_SECONDS, TimeUnit.SECONDS);
      executor.awaitTermination(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      endThreads();
      Thread.currentThread().interrupt();
    }
  }

  private void endThreads() {
    clock.shutdownNow();
    executor.shutdown();
    loops.shutdownGracefully(0, PATIENCE_SECONDS, TimeUnit.SECONDS).awaitUninterruptibly();
  }

  /** The usual negotiation, and on its way each connection's HTTP/2 is shown to the kit. */
  private static final class Watching implements InternalProtocolNegotiator.ProtocolNegotiator {
    private final InternalProtocolNegotiator.ProtocolNegotiator usual;
    private final BiConsumer<Channel, GrpcHttp2ConnectionHandler> connected;

    Watching(
        InternalProtocolNegotiator.ProtocolNegotiator usual,
        BiConsumer<Channel, GrpcHttp2ConnectionHandler> connected) {
      this.usual = usual;
      this.connected = connected;
    }

    @Override
    public AsciiString scheme() {
      return usual.scheme();
    }

    @Override
    public ChannelHandler newHandler(GrpcHttp2ConnectionHandler http2) {
      ChannelHandler handler = usual.newHandler(http2);
      return new ChannelInboundHandlerAdapter() {
        @Override
        public void handlerAdded(ChannelHandlerContext context) {
          connected.accept(context.channel(), http2);
          context.pipeline().replace(this, null, handler);
        }
      };
    }

    @Override
    public void close() {
      usual.close();
    }
  }
}
