package dev.timebound.grpc;

import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.Channel;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.Epoll;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollIoHandler;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioSocketChannel;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * The event loops under a client's channels. Each channel is given to one loop, in turn, so that
 * the channels of a pool are spread evenly. Daemon threads. Thread-safe; close it after the pool.
 */
public final class ConnectionLoops implements AutoCloseable {
  private static final boolean EPOLL = Epoll.isAvailable();

  private final EventLoopGroup loops;

  private ConnectionLoops(EventLoopGroup loops) {
    this.loops = loops;
  }

  /**
   * As many loops as there are processors.
   *
   * @param name of their threads, a number behind it
   */
  public static ConnectionLoops create(String name) {
    return new ConnectionLoops(
        new MultiThreadIoEventLoopGroup(
            Runtime.getRuntime().availableProcessors(),
            new DefaultThreadFactory(name, true),
            EPOLL ? EpollIoHandler.newFactory() : NioIoHandler.newFactory()));
  }

  /** Puts the channel on the next loop, and the watch on its connection. */
  public NettyChannelBuilder bind(NettyChannelBuilder channel, ConnectionWatch watch) {
    return channel
        .eventLoopGroup(loops.next())
        .channelFactory(
            () -> {
              Channel connection = EPOLL ? new EpollSocketChannel() : new NioSocketChannel();
              connection.pipeline().addFirst("timebound-watch", watch.handler());
              return connection;
            });
  }

  /** Lets the loops end once what they are at is done, within two seconds. Does not wait. */
  @Override
  public void close() {
    close(() -> {});
  }

  /** The same, and runs {@code afterwards} when the last of them has ended. */
  public void close(Runnable afterwards) {
    loops
        .shutdownGracefully(100, 2000, TimeUnit.MILLISECONDS)
        .addListener(ended -> afterwards.run());
  }
}
