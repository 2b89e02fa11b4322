package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.HOUR;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.protobuf.ByteString;
import dev.timebound.test.Rows;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedCall;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.handler.codec.http2.Http2StreamChannelBootstrap;
import io.netty.util.ReferenceCountUtil;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

@DisplayName("BT-41 unread streams do not stop the connection")
class ReadWindowsTest {
  private static final String SMALL = "small";
  private static final int UNREAD = 1024;
  private static final int THREE_MIB = 3 << 20;

  /** A read of the key {@link #SMALL} is answered at once, any other by that. */
  private static void answer(ScriptedBigtable server, Script other) {
    server
        .readRows()
        .answer(
            call ->
                call.readRows().getRows().getRowKeysCount() == 1
                    ? Script.start().rows(SMALL).ok()
                    : other);
  }

  private static Script large(int bytes) {
    ByteString value = ByteString.copyFrom(new byte[bytes]);
    return Script.start().message(Rows.message(Rows.row("big", value))).ok();
  }

  @Nested
  @DisplayName("BT-41 on one channel a small read completes")
  class SmallRead {
    private Scripted poolOfOne(int window) {
      return Scripted.start(
          settings ->
              settings
                  .gapTimeout(HOUR)
                  .streamWindowBytes(window)
                  .pool(pool -> pool.fixedChannels(1)));
    }

    private void smallRead(Scripted reads, List<Reader> unread) {
      int open = unread.size();
      Reader small = reads.read(Scripted.query().key(SMALL));
      assertThat(small.awaitComplete()).containsExactly(SMALL);
      assertThat(reads.server.openStreams()).isEqualTo(open);
      assertThat(unread).noneMatch(Reader::isOver);
      unread.forEach(Reader::cancel);
    }

    @Test
    @DisplayName("BT-41 beside three unread responses of 3 MiB, all open")
    void threeLarge() {
      int window = 256 << 10;
      try (Scripted reads = poolOfOne(window)) {
        answer(reads.server, large(THREE_MIB));
        List<Reader> unread = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
          unread.add(reads.unread());
        }
        reads.calls().forEach(call -> call.awaitBytesPushed(window));
        smallRead(reads, unread);
      }
    }

    @Test
    @DisplayName("BT-41 beside 1,024 unread streams that each hold a full window")
    void aThousand() {
      // The default; this JVM holds it twice, in the client's windows and in the server's
      // responses.
      int window = 256 << 10;
      try (Scripted reads = poolOfOne(window)) {
        answer(reads.server, large(window + 1024));
        List<Reader> unread = new ArrayList<>();
        for (int i = 0; i < UNREAD; i++) {
          unread.add(Reader.of(reads.all(), 0));
        }
        eventually(() -> assertThat(reads.calls()).hasSize(UNREAD));
        reads.calls().forEach(call -> call.awaitBytesPushed(window));
        smallRead(reads, unread);
      }
    }
  }

  @Test
  @DisplayName("BT-41 control: with a client that does not refill the connection's window it hangs")
  void control() throws InterruptedException {
    EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    try (ScriptedBigtable server = ScriptedBigtable.start()) {
      answer(server, large(THREE_MIB));
      Channel connection = connect(group, server.port());
      AtomicInteger received = new AtomicInteger();
      // Its bytes arrive, are never taken, and so are never given back to either window.
      call(connection, ReadRowsRequest.getDefaultInstance(), false, new AtomicInteger());
      ScriptedCall stuck = server.readRows().awaitCall(1);
      stuck.awaitBytesPushed(65_535);
      ReadRowsRequest small =
          Scripted.query().key(SMALL).build().toRequest("projects/p/instances/i/tables/t", "");
      call(connection, small, true, received);
      ScriptedCall waits = server.readRows().awaitCall(2);
      Scripted.letPass(Scripted.GAP.multipliedBy(2));
      assertThat(waits.bytesPushed()).isZero();
      assertThat(waits.end()).isEqualTo(ScriptedCall.End.OPEN);
      assertThat(received).hasValue(0);
      connection.close().sync();
      server.awaitOpenStreams(0);
    } finally {
      group.shutdownGracefully(0, 5, java.util.concurrent.TimeUnit.SECONDS).sync();
    }
  }

  private static Channel connect(EventLoopGroup group, int port) throws InterruptedException {
    return new Bootstrap()
        .group(group)
        .channel(NioSocketChannel.class)
        .handler(
            new ChannelInitializer<Channel>() {
              @Override
              protected void initChannel(Channel channel) {
                channel
                    .pipeline()
                    .addLast(
                        Http2FrameCodecBuilder.forClient().build(),
                        new Http2MultiplexHandler(new ChannelInboundHandlerAdapter()));
              }
            })
        .connect("127.0.0.1", port)
        .sync()
        .channel();
  }

  private static void call(
      Channel connection, ReadRowsRequest request, boolean reads, AtomicInteger received)
      throws InterruptedException {
    Http2StreamChannel stream =
        new Http2StreamChannelBootstrap(connection)
            .handler(
                new ChannelInboundHandlerAdapter() {
                  @Override
                  public void handlerAdded(ChannelHandlerContext ctx) {
                    ctx.channel().config().setAutoRead(reads);
                  }

                  @Override
                  public void channelRead(ChannelHandlerContext ctx, Object frame) {
                    if (frame instanceof Http2DataFrame data) {
                      received.addAndGet(data.content().readableBytes());
                    } else if (frame instanceof Http2HeadersFrame) {
                      ctx.read();
                    }
                    ReferenceCountUtil.release(frame);
                  }
                })
            .open()
            .sync()
            .getNow();
    DefaultHttp2Headers headers = new DefaultHttp2Headers();
    headers.method("POST").scheme("http").authority("localhost");
    headers.path("/" + BigtableGrpc.getReadRowsMethod().getFullMethodName());
    headers.set("content-type", "application/grpc").set("te", "trailers");
    stream.write(new DefaultHttp2HeadersFrame(headers));
    byte[] body = request.toByteArray();
    ByteBuf prefix = Unpooled.buffer(5).writeByte(0).writeInt(body.length);
    stream
        .writeAndFlush(
            new DefaultHttp2DataFrame(
                Unpooled.wrappedBuffer(prefix, Unpooled.wrappedBuffer(body)), true))
        .sync();
  }
}
