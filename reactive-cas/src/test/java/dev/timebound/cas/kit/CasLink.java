package dev.timebound.cas.kit;

import io.grpc.netty.shaded.io.grpc.netty.GrpcHttp2ConnectionHandler;
import io.grpc.netty.shaded.io.netty.buffer.PooledByteBufAllocator;
import io.grpc.netty.shaded.io.netty.buffer.Unpooled;
import io.grpc.netty.shaded.io.netty.channel.Channel;
import io.grpc.netty.shaded.io.netty.channel.ChannelHandlerContext;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2Connection;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2Error;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2Exception;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2FrameListener;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2FrameListenerDecorator;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2Headers;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2Settings;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A connection below gRPC's server: knows which stream a call is, sees what the client resets, and
 * writes the frames that gRPC's server would not.
 */
final class CasLink implements CasConnection {
  /** The stream whose headers gRPC's server is being given, on the event loop that does so. */
  private static final ThreadLocal<@Nullable Arrival> ARRIVING = new ThreadLocal<>();

  /** A call's place: the connection and its stream there. */
  record Arrival(CasLink link, int streamId) {
    static @Nullable Arrival now() {
      return ARRIVING.get();
    }
  }

  private final int id;
  private final Channel channel;
  private final GrpcHttp2ConnectionHandler http2;
  private final InetSocketAddress client;

  /** What gRPC's server hears of the client's frames. */
  private final Http2FrameListener server;

  private final Map<Integer, CasCallRecord> open = new ConcurrentHashMap<>();
  private final AtomicInteger resets = new AtomicInteger();
  private final AtomicInteger pings = new AtomicInteger();

  CasLink(int id, Channel channel, GrpcHttp2ConnectionHandler http2) {
    this.id = id;
    this.channel = channel;
    this.http2 = http2;
    this.client = (InetSocketAddress) channel.remoteAddress();
    this.server = http2.decoder().frameListener();
    http2.decoder().frameListener(new Tap(server));
    channel.closeFuture().addListener(closed -> endAll(CasCall.End.CONNECTION_CLOSED));
  }

  void began(CasCallRecord call) {
    open.put(call.streamId(), call);
  }

  void ended(CasCallRecord call) {
    open.remove(call.streamId());
  }

  private void endAll(CasCall.End how) {
    List.copyOf(open.values()).forEach(call -> call.ended(how));
  }

  void resetStream(CasCallRecord call, long code) {
    // Behind what gRPC's server is about to write: it may put that off by one turn of the loop.
    channel.eventLoop().execute(() -> resetNow(call, code));
  }

  private void resetNow(CasCallRecord call, long code) {
    onLoop(
        context -> {
          call.ended(CasCall.End.RESET_BY_SERVER);
          forget(context, call, code);
          http2.resetStream(context, call.streamId(), code, context.newPromise());
          context.flush();
        });
  }

  /**
   * gRPC's server would not learn of a reset that it has not sent: it would keep what the client
   * sent ahead for a reader that does not come any more.
   */
  private void forget(ChannelHandlerContext context, CasCallRecord call, long code) {
    try {
      server.onRstStreamRead(context, call.streamId(), code);
    } catch (Http2Exception e) {
      throw new IllegalStateException("reset of " + call, e);
    }
  }

  /** GOAWAY that disowns that call and those after it; older ones go on. */
  void goAwayRefusing(CasCallRecord call, long code) {
    onLoop(
        context -> {
          open.values().stream()
              .filter(other -> other.streamId() >= call.streamId())
              .toList()
              .forEach(other -> other.ended(CasCall.End.REFUSED));
          writeGoAway(context, Math.max(0, call.streamId() - 2), code);
        });
  }

  /** Past the connection's own bookkeeping, which would forget the streams it disowns. */
  private void writeGoAway(ChannelHandlerContext context, int lastStreamId, long code) {
    http2
        .encoder()
        .frameWriter()
        .writeGoAway(context, lastStreamId, code, Unpooled.EMPTY_BUFFER, context.newPromise());
    context.flush();
  }

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
  public int openCalls() {
    return open.size();
  }

  @Override
  public int resetsReceived() {
    return resets.get();
  }

  @Override
  public int pingsReceived() {
    return pings.get();
  }

  @Override
  public long memoryInUse() {
    return ((PooledByteBufAllocator) channel.alloc()).pinnedDirectMemory();
  }

  @Override
  public void goAway() {
    onLoop(
        context ->
            writeGoAway(
                context,
                http2.connection().remote().lastStreamCreated(),
                Http2Error.NO_ERROR.code()));
  }

  @Override
  public void maxStreams(int streams) {
    onLoop(
        context -> {
          Http2Settings told = new Http2Settings().maxConcurrentStreams(streams);
          http2.encoder().writeSettings(context, told, context.newPromise());
          context.flush();
        });
    Http2Connection.Endpoint<?> clients = http2.connection().remote();
    Wait.until(
        "the client may have " + streams + " streams",
        () -> clients.maxActiveStreams() == streams,
        () -> "it may have " + clients.maxActiveStreams());
  }

  @Override
  public void close() {
    onLoop(context -> closeNow());
  }

  @Override
  public void reset() {
    onLoop(
        context -> {
          channel.config().setOption(ChannelOption.SO_LINGER, 0);
          closeNow();
        });
  }

  /** Past HTTP/2, which would say GOAWAY first and wait for its streams. */
  private void closeNow() {
    channel.unsafe().close(channel.unsafe().voidPromise());
  }

  private void onLoop(Consumer<ChannelHandlerContext> action) {
    channel
        .eventLoop()
        .execute(
            () -> {
              ChannelHandlerContext context = channel.pipeline().context(http2);
              if (channel.isActive() && context != null) {
                action.accept(context);
              }
            });
  }

  @Override
  public String toString() {
    return "connection " + id + (isOpen() ? " (" + openCalls() + " open calls)" : " (closed)");
  }

  /** Sees each frame before gRPC's server does. */
  private final class Tap extends Http2FrameListenerDecorator {
    Tap(Http2FrameListener server) {
      super(server);
    }

    @Override
    public void onHeadersRead(
        ChannelHandlerContext context,
        int streamId,
        Http2Headers headers,
        int streamDependency,
        short weight,
        boolean exclusive,
        int padding,
        boolean endStream)
        throws Http2Exception {
      ARRIVING.set(new Arrival(CasLink.this, streamId));
      try {
        super.onHeadersRead(
            context, streamId, headers, streamDependency, weight, exclusive, padding, endStream);
      } finally {
        ARRIVING.remove();
      }
    }

    @Override
    public void onRstStreamRead(ChannelHandlerContext context, int streamId, long code)
        throws Http2Exception {
      resets.incrementAndGet();
      CasCallRecord call = open.get(streamId);
      if (call != null) {
        call.ended(CasCall.End.RESET_BY_CLIENT);
      }
      super.onRstStreamRead(context, streamId, code);
    }

    @Override
    public void onPingRead(ChannelHandlerContext context, long data) throws Http2Exception {
      pings.incrementAndGet();
      super.onPingRead(context, data);
    }
  }
}
