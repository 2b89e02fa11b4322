package dev.timebound.pg;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoopGroup;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.netty.channel.ChannelOperations;
import reactor.netty.resources.LoopResources;

/**
 * The sockets that one connection's driver opens: that of its dial, those of a dial it made anew,
 * those of its cancel requests. The driver hands none of them out before its dial has ended, and a
 * dial that nobody answers never ends; so they are taken down where they are made, and {@link
 * #abort()} closes them whatever the driver waits for. (PG-4)
 *
 * <p>All methods may be called from any thread and none waits.
 */
final class Sockets implements LoopResources {
  private final LoopResources loops;

  /** Of the whole reader: what is open, whoever opened it. */
  private final Set<Channel> allOpen;

  private final Set<Channel> open = ConcurrentHashMap.newKeySet();
  private volatile @Nullable Channel newest;

  /** Set under the lock that a socket is made and noted under: none is made unseen after it. */
  private volatile boolean aborted;

  private final Object lock = new Object();

  Sockets(LoopResources loops, Set<Channel> allOpen) {
    this.loops = loops;
    this.allOpen = allOpen;
  }

  /** The one that was opened last; null where none was. */
  @Nullable Channel newest() {
    return newest;
  }

  /** Closes all that are open, and every one that is opened from now on. */
  void abort() {
    synchronized (lock) {
      aborted = true;
    }
    closeOpen();
  }

  /** Closes all that are open. */
  void closeOpen() {
    open.forEach(Sockets::closeNow);
  }

  @Override
  public <C extends Channel> C onChannel(Class<C> type, EventLoopGroup group) {
    final C channel;
    synchronized (lock) {
      if (aborted) {
        throw new IllegalStateException("the dial was given up");
      }
      channel = loops.onChannel(type, group);
      // before anyone sees it: who waits for its end is told after it is gone from here
      channel
          .closeFuture()
          .addListener(
              closed -> {
                open.remove(channel);
                allOpen.remove(channel);
              });
      open.add(channel);
      allOpen.add(channel);
    }
    // one that is aborted before its event loop has it is closed when it has
    channel.pipeline().addFirst(new Ends());
    newest = channel;
    return channel;
  }

  /**
   * Reactor Netty keeps what was received for a receiver that has not asked for it, past the
   * socket's end too; and the driver, which has told its statements of that end by then, asks for
   * none of it any more. Rows that nobody took would never be released.
   */
  private final class Ends extends ChannelInboundHandlerAdapter {
    private @Nullable ChannelOperations<?, ?> received;

    @Override
    public void channelRegistered(ChannelHandlerContext ctx) {
      ctx.fireChannelRegistered();
      if (aborted) {
        closeNow(ctx.channel());
      }
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
      // behind this it is not to be had from the channel any more
      received = ChannelOperations.get(ctx.channel());
      ctx.fireChannelInactive();
    }

    @Override
    public void channelUnregistered(ChannelHandlerContext ctx) {
      ChannelOperations<?, ?> left = received;
      if (left != null) {
        left.discard();
      }
      ctx.fireChannelUnregistered();
    }
  }

  /**
   * Past every handler: TLS would first wait until its farewell is flushed, which a peer that does
   * not read can hold up.
   */
  static void closeNow(Channel channel) {
    if (channel.isRegistered()) {
      ChannelHandlerContext first = channel.pipeline().firstContext();
      if (first == null) {
        channel.close();
      } else {
        first.close();
      }
    }
  }

  @Override
  public <C extends Channel> Class<? extends C> onChannelClass(
      Class<C> type, EventLoopGroup group) {
    return loops.onChannelClass(type, group);
  }

  @Override
  public EventLoopGroup onClient(boolean useNative) {
    return loops.onClient(useNative);
  }

  @Override
  public EventLoopGroup onServer(boolean useNative) {
    return loops.onServer(useNative);
  }

  @Override
  public EventLoopGroup onServerSelect(boolean useNative) {
    return loops.onServerSelect(useNative);
  }

  @Override
  public boolean daemon() {
    return loops.daemon();
  }
}
