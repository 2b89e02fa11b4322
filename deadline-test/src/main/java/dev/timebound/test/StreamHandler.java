package dev.timebound.test;

import com.google.protobuf.MessageLite;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufInputStream;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2ResetFrame;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.util.ReferenceCountUtil;
import org.jspecify.annotations.Nullable;

/** One stream of a connection: takes the request in, then has its script played. */
final class StreamHandler extends ChannelInboundHandlerAdapter {
  private static final int PREFIX = 5;

  private final ScriptedBigtable server;
  private final ServerLink link;
  private @Nullable Http2Headers headers;
  private @Nullable ByteBuf body;
  private @Nullable ScriptRunner runner;
  private boolean reset;

  StreamHandler(ScriptedBigtable server, ServerLink link) {
    this.server = server;
    this.link = link;
  }

  @Override
  public void channelRead(ChannelHandlerContext ctx, Object frame) {
    try {
      if (frame instanceof Http2HeadersFrame received) {
        headers = received.headers();
        if (received.isEndStream()) {
          requestComplete(ctx);
        }
      } else if (frame instanceof Http2DataFrame data) {
        if (body == null) {
          body = ctx.alloc().buffer();
        }
        body.writeBytes(data.content());
        if (data.isEndStream()) {
          requestComplete(ctx);
        }
      }
    } finally {
      ReferenceCountUtil.release(frame);
    }
  }

  private void requestComplete(ChannelHandlerContext ctx) {
    Http2StreamChannel stream = (Http2StreamChannel) ctx.channel();
    CharSequence path = headers == null ? "" : headers.path();
    MethodDescriptor<?, ?> method = server.method(path.toString());
    if (method == null || headers == null || body == null || body.readableBytes() < PREFIX) {
      play(
          stream,
          Script.start()
              .status(Status.UNIMPLEMENTED.withDescription("no such method here: " + path)));
      return;
    }
    body.skipBytes(PREFIX);
    MessageLite request = (MessageLite) method.parseRequest(new ByteBufInputStream(body));
    CallRecord call =
        server.began(link, method, request, GrpcHeaders.metadata(headers), stream.stream().id());
    Script script;
    try {
      script = server.scriptFor(call);
    } catch (RuntimeException e) {
      script = Script.start().status(Status.INTERNAL.withDescription("script failed: " + e));
    }
    play(stream, script);
  }

  private void play(Http2StreamChannel stream, Script script) {
    ScriptRunner started = new ScriptRunner(stream, link, script);
    runner = started;
    try {
      started.start();
    } catch (RuntimeException e) {
      started.failed(e);
    }
  }

  @Override
  public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
    if (event instanceof Http2ResetFrame) {
      reset = true;
    }
    ReferenceCountUtil.release(event);
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    if (body != null) {
      body.release();
      body = null;
    }
    link.ended(
        ((Http2StreamChannel) ctx.channel()).stream().id(), ScriptedCall.End.CONNECTION_CLOSED, -1);
    if (runner != null) {
      runner.streamClosed(reset);
    }
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    if (runner != null) {
      runner.failed(cause);
    }
  }
}
