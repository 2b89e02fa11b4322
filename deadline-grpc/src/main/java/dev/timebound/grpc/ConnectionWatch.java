package dev.timebound.grpc;

import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.netty.channel.ChannelDuplexHandler;
import io.grpc.netty.shaded.io.netty.channel.ChannelHandlerContext;
import io.grpc.netty.shaded.io.netty.channel.ChannelPipeline;
import io.grpc.netty.shaded.io.netty.channel.ChannelPromise;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2ConnectionHandler;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * Tells data that arrives from data that is only now read. What has come in for a stream that
 * nobody asked waits in the client; when it is asked for, gRPC reports its bytes, and on a
 * connection that froze long ago that would look like a sign of life. (BT-10)
 *
 * <p>Both happen on the connection's event loop, but what arrives is reported within the socket's
 * read. The pool makes one watch a channel; {@link ConnectionLoops} puts it on the connection. On a
 * channel made without it every report counts as an arrival.
 */
public final class ConnectionWatch {
  /** Plain: the loop that writes it reads it. Set once, before the channel's first call. */
  private boolean installed;

  /** The loop is within the read of the channel's socket. */
  private boolean reading;

  private final LoopWatch loop;

  /** The channel whose connection this is; null until the pool has it. */
  private volatile @Nullable ManagedChannel channel;

  private volatile boolean abandoned;

  /** The connection's handlers, of the last one where the channel connected anew. */
  private volatile @Nullable ChannelPipeline pipeline;

  ConnectionWatch(LoopWatch loop) {
    this.loop = loop;
  }

  /** For a channel that stands alone, in no pool; see {@link ConnectionLoops#build}. */
  public static ConnectionWatch unpooled() {
    return new ConnectionWatch(new LoopWatch(() -> 0, 0));
  }

  void runsOn(Executor loop) {
    this.loop.on(loop);
  }

  /** Whether the connection's event loop runs; true where it is not known. (BT-43) */
  boolean loopRuns() {
    return loop.runs();
  }

  void belongsTo(ManagedChannel made) {
    channel = made;
  }

  /** There will be no channel. */
  void abandoned() {
    abandoned = true;
  }

  /** Whether nothing of the channel needs its event loop any more. */
  boolean isTerminated() {
    ManagedChannel made = channel;
    return abandoned || (made != null && made.isTerminated());
  }

  /**
   * How many streams the server takes on the connection at once; {@link Integer#MAX_VALUE} where it
   * has set no limit, or there is no connection. What gRPC is given beyond that waits in it without
   * a word. From any thread; it is known once the channel is READY, and what the server changes
   * later is seen a moment late.
   */
  public int streamLimit() {
    ChannelPipeline last = pipeline;
    Http2ConnectionHandler http2 = last == null ? null : last.get(Http2ConnectionHandler.class);
    return http2 == null ? Integer.MAX_VALUE : http2.connection().local().maxActiveStreams();
  }

  /** From the event loop, in a report of the transport. */
  boolean isArriving() {
    return reading || !installed;
  }

  /**
   * A handler for the head of a new connection's pipeline.
   *
   * <p>It also flushes what was written without a flush. gRPC's transport does that with calls
   * queued behind the server's stream limit: where a cancel frees a stream, the next call's headers
   * are written once the reset has left, after the flush that sent it, and would wait for whatever
   * happens next on the connection; on a quiet one for ever. (BT-1)
   */
  ChannelDuplexHandler handler() {
    installed = true;
    return new ChannelDuplexHandler() {
      private boolean unflushed;
      private boolean looks;

      @Override
      public void handlerAdded(ChannelHandlerContext context) {
        pipeline = context.pipeline();
      }

      @Override
      public void channelRead(ChannelHandlerContext context, Object data) {
        reading = true;
        try {
          context.fireChannelRead(data);
        } finally {
          reading = false;
        }
      }

      @Override
      public void write(ChannelHandlerContext context, Object data, ChannelPromise promise) {
        context.write(data, promise);
        unflushed = true;
        if (!looks) {
          looks = true;
          context.executor().execute(() -> look(context)); // behind what the loop is at
        }
      }

      @Override
      public void flush(ChannelHandlerContext context) {
        unflushed = false; // before: the flush itself may bring writes
        context.flush();
      }

      private void look(ChannelHandlerContext context) {
        looks = false;
        if (unflushed) {
          context
              .channel()
              .flush(); // from the top: a request's body waits in HTTP/2's flow control
        }
      }
    };
  }
}
