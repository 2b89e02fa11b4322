package dev.timebound.grpc;

import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.Channel;
import io.grpc.netty.shaded.io.netty.channel.EventLoop;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.Epoll;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollIoHandler;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioSocketChannel;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * The event loops under a client's channels. Each channel is given to one loop, in turn, so that
 * the channels of a pool are spread evenly, and one loop that is blocked holds up its own channels
 * and no other. The pool sees that a loop is blocked and does not take its channels for stalled.
 * Daemon threads. Thread-safe; close it after the pool. (BT-43)
 */
public final class ConnectionLoops implements AutoCloseable {
  private static final boolean EPOLL = Epoll.isAvailable();

  /** A connection that does not end holds the event loops for 10 s at most. */
  private static final int CLOSE_LOOKS = 500;

  private static final long CLOSE_LOOK_MILLIS = 20;

  private final EventLoopGroup loops;

  /** Of the channels that may still need their loop. */
  private final Set<ConnectionWatch> watches = ConcurrentHashMap.newKeySet();

  private ConnectionLoops(EventLoopGroup loops) {
    this.loops = loops;
  }

  /**
   * As many loops as there are processors.
   *
   * @param name of their threads, a number behind it
   */
  public static ConnectionLoops create(String name) {
    return create(name, Runtime.getRuntime().availableProcessors());
  }

  static ConnectionLoops create(String name, int loops) {
    return new ConnectionLoops(
        new MultiThreadIoEventLoopGroup(
            loops,
            new DefaultThreadFactory(name, true),
            EPOLL ? EpollIoHandler.newFactory() : NioIoHandler.newFactory()));
  }

  /** Puts the channel on the next loop, and the watch on its connection. */
  public NettyChannelBuilder bind(NettyChannelBuilder channel, ConnectionWatch watch) {
    EventLoop loop = loops.next();
    watch.runsOn(loop);
    watches.removeIf(ConnectionWatch::isTerminated);
    watches.add(watch);
    return channel
        .eventLoopGroup(loop)
        .channelFactory(
            () -> {
              Channel connection = EPOLL ? new EpollSocketChannel() : new NioSocketChannel();
              connection.pipeline().addFirst("timebound-watch", watch.handler());
              return connection;
            });
  }

  /**
   * Builds a channel that stands alone, in no pool, and puts it on the next loop.
   *
   * @param watch {@link ConnectionWatch#unpooled}, of this channel alone
   */
  public ManagedChannel build(NettyChannelBuilder channel, ConnectionWatch watch) {
    ManagedChannel built = bind(channel, watch).build();
    watch.belongsTo(built);
    return built;
  }

  /**
   * Lets the loops end once the channels on them are gone, within two seconds from then, and after
   * 10 seconds in any case. Does not wait.
   */
  @Override
  public void close() {
    close(() -> {});
  }

  /** The same, and runs {@code afterwards} when the last of them has ended. */
  public void close(Runnable afterwards) {
    close(CLOSE_LOOKS, afterwards);
  }

  /**
   * A channel that is closed while it connects goes on until it notices, and where its event loop
   * had ended by then its calls would never be told of their end.
   */
  private void close(int looks, Runnable afterwards) {
    if (looks > 0 && !watches.stream().allMatch(ConnectionWatch::isTerminated)) {
      try {
        loops
            .next()
            .schedule(() -> close(looks - 1, afterwards), CLOSE_LOOK_MILLIS, TimeUnit.MILLISECONDS);
        return;
      } catch (RejectedExecutionException closedBefore) {
        // then at once
      }
    }
    loops
        .shutdownGracefully(100, 2000, TimeUnit.MILLISECONDS)
        .addListener(ended -> afterwards.run());
  }
}
