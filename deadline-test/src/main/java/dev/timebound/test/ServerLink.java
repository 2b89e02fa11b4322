package dev.timebound.test;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2FrameCodec;
import io.netty.handler.codec.http2.Http2FrameLogger;
import io.netty.handler.codec.http2.Http2FrameWriter;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.logging.LogLevel;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * A connection of the scripted server: counts every frame that comes or leaves, and writes the
 * frames that no codec would.
 */
final class ServerLink implements ScriptedConnection {
  private final int id;
  private final Channel channel;
  private final InetSocketAddress client;
  // of the event loop
  private final Map<Integer, CallRecord> open = new HashMap<>();
  private final AtomicInteger openStreams = new AtomicInteger();
  private final AtomicInteger peakStreams = new AtomicInteger();
  private final AtomicInteger resets = new AtomicInteger();
  private final AtomicInteger goAways = new AtomicInteger();
  private final AtomicInteger pings = new AtomicInteger();
  private final AtomicInteger windowUpdates = new AtomicInteger();
  private final AtomicLong pushed = new AtomicLong();
  private boolean goingAway;
  private @Nullable Http2FrameCodec codec;

  ServerLink(int id, Channel channel) {
    this.id = id;
    this.channel = channel;
    this.client = (InetSocketAddress) channel.remoteAddress();
  }

  void codec(Http2FrameCodec http2) {
    codec = http2;
  }

  void began(CallRecord call) {
    open.put(call.streamId(), call);
    openStreams.lazySet(open.size());
    peakStreams.lazySet(Math.max(peakStreams.get(), open.size()));
  }

  void ended(int streamId, ScriptedCall.End how, long code) {
    CallRecord call = open.remove(streamId);
    if (call != null) {
      openStreams.lazySet(open.size());
      call.ended(how, code);
      closeIfDrained();
    }
  }

  /** As servers do: a connection that said GOAWAY is closed once its last call has ended. */
  private void closeIfDrained() {
    if (goingAway && open.isEmpty() && channel.isActive()) {
      // the frame that ended the call is on its way to the socket only after this
      channel.eventLoop().execute(this::close);
    }
  }

  // ---- frames as they are, past the codec's bookkeeping

  void writeHeaders(int streamId, Http2Headers headers, boolean endStream) {
    writer().writeHeaders(context(), streamId, headers, 0, endStream, context().newPromise());
    context().flush();
  }

  void writeData(int streamId, ByteBuf data) {
    writer().writeData(context(), streamId, data, 0, false, context().newPromise());
    context().flush();
  }

  void writeGoAway(int lastStreamId, long code) {
    writer()
        .writeGoAway(context(), lastStreamId, code, Unpooled.EMPTY_BUFFER, context().newPromise());
    context().flush();
    goingAway = true;
    open.keySet().stream()
        .filter(streamId -> streamId > lastStreamId)
        .toList()
        .forEach(streamId -> ended(streamId, ScriptedCall.End.REFUSED, -1));
    closeIfDrained();
  }

  int lastStream() {
    return http2().connection().remote().lastStreamCreated();
  }

  private Http2FrameCodec http2() {
    return Objects.requireNonNull(codec, "codec");
  }

  private Http2FrameWriter writer() {
    return http2().encoder().frameWriter();
  }

  private ChannelHandlerContext context() {
    return Objects.requireNonNull(channel.pipeline().context(http2()), "context");
  }

  // ---- what a test sees and does

  @Override
  public int id() {
    return id;
  }

  @Override
  public InetSocketAddress client() {
    return client;
  }

  @Override
  public boolean isOpen() {
    return channel.isActive();
  }

  @Override
  public int openStreams() {
    return openStreams.get();
  }

  @Override
  public int peakStreams() {
    return peakStreams.get();
  }

  @Override
  public int resetsReceived() {
    return resets.get();
  }

  @Override
  public int goAwaysReceived() {
    return goAways.get();
  }

  @Override
  public int pingsReceived() {
    return pings.get();
  }

  @Override
  public int windowUpdatesReceived() {
    return windowUpdates.get();
  }

  @Override
  public long bytesPushed() {
    return pushed.get();
  }

  @Override
  public void goAway() {
    onLoop(() -> writeGoAway(lastStream(), Http2Error.NO_ERROR.code()));
  }

  @Override
  public void goAway(int lastStreamId, Http2Error error) {
    onLoop(() -> writeGoAway(lastStreamId, error.code()));
  }

  @Override
  public void close() {
    onLoop(this::closeWhenWritten);
  }

  @Override
  public void reset() {
    onLoop(
        () -> {
          channel.config().setOption(ChannelOption.SO_LINGER, 0);
          closeWhenWritten();
        });
  }

  /** Past the codec, which would say GOAWAY first and wait for its streams. */
  private void closeWhenWritten() {
    if (channel.isActive()) {
      context()
          .writeAndFlush(Unpooled.EMPTY_BUFFER)
          .addListener(written -> channel.unsafe().close(channel.unsafe().voidPromise()));
    }
  }

  private void onLoop(Runnable action) {
    if (channel.eventLoop().inEventLoop()) {
      action.run();
    } else {
      channel.eventLoop().execute(action);
    }
  }

  @Override
  public String toString() {
    return "connection " + id + (isOpen() ? " (" + openStreams() + " open streams)" : " (closed)");
  }

  /** Sees each frame as it is read from or written to the socket, after flow control. */
  final class Meter extends Http2FrameLogger {
    Meter() {
      super(LogLevel.TRACE, Meter.class);
    }

    @Override
    public boolean isEnabled() {
      return false;
    }

    @Override
    public void logData(
        Direction direction,
        ChannelHandlerContext ctx,
        int streamId,
        ByteBuf data,
        int padding,
        boolean endStream) {
      if (direction == Direction.OUTBOUND) {
        int bytes = data.readableBytes();
        pushed.lazySet(pushed.get() + bytes);
        CallRecord call = open.get(streamId);
        if (call != null) {
          call.pushed(bytes);
        }
        if (endStream) {
          ended(streamId, ScriptedCall.End.COMPLETE, -1);
        }
      }
    }

    @Override
    public void logHeaders(
        Direction direction,
        ChannelHandlerContext ctx,
        int streamId,
        Http2Headers headers,
        int padding,
        boolean endStream) {
      if (direction == Direction.OUTBOUND && endStream) {
        ended(streamId, ScriptedCall.End.COMPLETE, -1);
      }
    }

    @Override
    public void logRstStream(
        Direction direction, ChannelHandlerContext ctx, int streamId, long code) {
      if (direction == Direction.INBOUND) {
        resets.lazySet(resets.get() + 1);
        ended(streamId, ScriptedCall.End.RESET_BY_CLIENT, code);
      } else {
        ended(streamId, ScriptedCall.End.RESET_BY_SERVER, code);
      }
    }

    @Override
    public void logPing(Direction direction, ChannelHandlerContext ctx, long data) {
      if (direction == Direction.INBOUND) {
        pings.lazySet(pings.get() + 1);
      }
    }

    @Override
    public void logGoAway(
        Direction direction,
        ChannelHandlerContext ctx,
        int lastStreamId,
        long code,
        ByteBuf debug) {
      if (direction == Direction.INBOUND) {
        goAways.lazySet(goAways.get() + 1);
      }
    }

    @Override
    public void logWindowsUpdate(
        Direction direction, ChannelHandlerContext ctx, int streamId, int increment) {
      if (direction == Direction.INBOUND && streamId == 0) {
        windowUpdates.lazySet(windowUpdates.get() + 1);
      }
    }
  }
}
