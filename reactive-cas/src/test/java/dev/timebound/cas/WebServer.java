package dev.timebound.cas;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.grpc.netty.shaded.io.netty.bootstrap.ServerBootstrap;
import io.grpc.netty.shaded.io.netty.buffer.Unpooled;
import io.grpc.netty.shaded.io.netty.channel.Channel;
import io.grpc.netty.shaded.io.netty.channel.ChannelHandler;
import io.grpc.netty.shaded.io.netty.channel.ChannelHandlerContext;
import io.grpc.netty.shaded.io.netty.channel.ChannelInboundHandlerAdapter;
import io.grpc.netty.shaded.io.netty.channel.ChannelInitializer;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.SimpleChannelInboundHandler;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerSocketChannel;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2HeadersFrame;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2MultiplexHandler;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** What stands where a store should: it speaks HTTP/2 and answers all with a page. */
final class WebServer implements AutoCloseable {
  private final MultiThreadIoEventLoopGroup loop =
      new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
  private final Channel listener;

  private WebServer(int status) {
    listener =
        new ServerBootstrap()
            .group(loop)
            .channel(NioServerSocketChannel.class)
            .childHandler(
                initializer(
                    connection ->
                        connection
                            .pipeline()
                            .addLast(Http2FrameCodecBuilder.forServer().build())
                            .addLast(
                                new Http2MultiplexHandler(
                                    initializer(
                                        stream -> stream.pipeline().addLast(new Page(status)))))
                            .addLast(new Quiet())))
            .bind("127.0.0.1", 0)
            .syncUninterruptibly()
            .channel();
  }

  static WebServer answering(int status) {
    return new WebServer(status);
  }

  int port() {
    return ((InetSocketAddress) listener.localAddress()).getPort();
  }

  CasConfig config() {
    return new CasConfig(List.of(CasConfig.Shard.of("s0", "127.0.0.1:" + port())));
  }

  private static ChannelHandler initializer(Consumer<Channel> init) {
    return new ChannelInitializer<>() {
      @Override
      protected void initChannel(Channel channel) {
        init.accept(channel);
      }
    };
  }

  private static final class Page extends SimpleChannelInboundHandler<Http2HeadersFrame> {
    private final int status;

    Page(int status) {
      this.status = status;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext stream, Http2HeadersFrame request) {
      DefaultHttp2Headers headers = new DefaultHttp2Headers();
      headers.status(Integer.toString(status)).set("content-type", "text/html");
      stream.write(new DefaultHttp2HeadersFrame(headers));
      byte[] page = "<html>\n<p>nothing\n</html>".getBytes(US_ASCII);
      stream.writeAndFlush(new DefaultHttp2DataFrame(Unpooled.wrappedBuffer(page), true));
    }
  }

  /** A client that goes is no trouble. */
  private static final class Quiet extends ChannelInboundHandlerAdapter {
    @Override
    public void exceptionCaught(ChannelHandlerContext connection, Throwable gone) {
      connection.close();
    }
  }

  @Override
  public void close() {
    loop.shutdownGracefully(0, 10, TimeUnit.SECONDS).syncUninterruptibly();
  }
}
