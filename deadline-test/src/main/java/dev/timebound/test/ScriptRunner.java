package dev.timebound.test;

import com.google.protobuf.MessageLite;
import io.grpc.Metadata;
import io.grpc.Status;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.DefaultHttp2ResetFrame;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2StreamChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Iterator;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Plays one script on one stream, on the connection's event loop. */
final class ScriptRunner {
  // An endless stream of messages lets the loop's other work in between.
  private static final int MESSAGES_AT_ONCE = 32;

  private final Http2StreamChannel stream;
  private final ServerLink link;
  private final int streamId;
  private final Script script;
  private boolean headersSent;
  private boolean over;
  private boolean raw;
  private @Nullable Script late;

  ScriptRunner(Http2StreamChannel stream, ServerLink link, Script script) {
    this(stream, link, script, false);
  }

  private ScriptRunner(Http2StreamChannel stream, ServerLink link, Script script, boolean raw) {
    this.stream = stream;
    this.link = link;
    this.streamId = stream.stream().id();
    this.script = script;
    this.raw = raw;
  }

  void start() {
    run(0);
  }

  private void run(int step) {
    if (!over && step < script.steps().size()) {
      script.steps().get(step).run(this, () -> run(step + 1));
    }
  }

  /** The stream is gone: no step follows, save those kept for a reset. */
  void streamClosed(boolean byClientsReset) {
    boolean wasOver = over;
    over = true;
    if (byClientsReset && late != null && !wasOver) {
      ScriptRunner afterwards = new ScriptRunner(stream, link, late, true);
      afterwards.headersSent = headersSent;
      afterwards.start();
    }
  }

  Executor executor() {
    return stream.eventLoop();
  }

  ScriptedConnection connection() {
    return link;
  }

  // ---- steps

  void after(Duration time, Runnable next) {
    stream.eventLoop().schedule(next, time.toNanos(), TimeUnit.NANOSECONDS);
  }

  void headers(Metadata metadata) {
    if (headersSent) {
      throw new IllegalStateException("the script sends headers twice");
    }
    headersSent = true;
    write(GrpcHeaders.response(metadata), false);
  }

  void messages(Iterator<? extends MessageLite> messages, Runnable next) {
    try {
      for (int sent = 0; !over; sent++) {
        if (!messages.hasNext()) {
          next.run();
          return;
        }
        if (sent == MESSAGES_AT_ONCE) {
          stream.eventLoop().execute(() -> messages(messages, next));
          return;
        }
        ChannelFuture left = data(messages.next().toByteArray());
        if (left != null && !left.isDone()) {
          left.addListener(done -> messages(messages, next));
          return;
        }
      }
    } catch (RuntimeException e) {
      failed(e);
    }
  }

  void rawMessage(byte[] body, Runnable next) {
    ChannelFuture left = data(body);
    if (left == null) {
      next.run();
    } else {
      left.addListener(done -> next.run());
    }
  }

  void status(Status status, Metadata trailers) {
    over = true;
    Http2Headers headers =
        headersSent ? new DefaultHttp2Headers() : GrpcHeaders.response(new Metadata());
    write(GrpcHeaders.trailers(headers, status, trailers), true);
  }

  void reset(long code) {
    over = true;
    stream.writeAndFlush(new DefaultHttp2ResetFrame(code));
  }

  void httpStatus(int status) {
    if (headersSent) {
      throw new IllegalStateException("the script sends headers twice");
    }
    over = true;
    headersSent = true;
    write(
        new DefaultHttp2Headers().status(Integer.toString(status)).set("content-type", "text/html"),
        false);
    byte[] page = ("<html>" + status + "</html>").getBytes(StandardCharsets.US_ASCII);
    stream.writeAndFlush(new DefaultHttp2DataFrame(Unpooled.wrappedBuffer(page), true));
  }

  void goAway() {
    link.goAway();
  }

  void goAwayRefusing(long code) {
    over = true;
    link.writeGoAway(streamId - 2 > 0 ? streamId - 2 : 0, code);
  }

  void whenReset(Script afterwards) {
    late = afterwards;
  }

  void failed(Throwable cause) {
    if (!over) {
      status(Status.INTERNAL.withDescription("script failed: " + cause), new Metadata());
    }
  }

  // ---- writing

  private @Nullable ChannelFuture data(byte[] message) {
    if (!headersSent) {
      headers(new Metadata());
    }
    ByteBuf prefix = Unpooled.buffer(5).writeByte(0).writeInt(message.length);
    ByteBuf framed = Unpooled.wrappedBuffer(prefix, Unpooled.wrappedBuffer(message));
    if (raw) {
      link.writeData(streamId, framed);
      return null;
    }
    return stream.writeAndFlush(new DefaultHttp2DataFrame(framed));
  }

  private void write(Http2Headers headers, boolean endStream) {
    if (raw) {
      link.writeHeaders(streamId, headers, endStream);
    } else {
      stream.writeAndFlush(new DefaultHttp2HeadersFrame(headers, endStream));
    }
  }
}
