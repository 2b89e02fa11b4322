package dev.timebound.grpc;

import io.grpc.netty.shaded.io.netty.channel.ChannelHandlerContext;
import io.grpc.netty.shaded.io.netty.channel.ChannelInboundHandlerAdapter;

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

  ConnectionWatch() {}

  /** From the event loop, in a report of the transport. */
  boolean isArriving() {
    return reading || !installed;
  }

  /** A handler for the head of a new connection's pipeline. */
  ChannelInboundHandlerAdapter handler() {
    installed = true;
    return new ChannelInboundHandlerAdapter() {
      @Override
      public void channelRead(ChannelHandlerContext context, Object data) {
        reading = true;
        try {
          context.fireChannelRead(data);
        } finally {
          reading = false;
        }
      }
    };
  }
}
