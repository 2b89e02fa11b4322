package dev.timebound.test;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.PingAndWarmResponse;
import com.google.protobuf.MessageLite;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http2.Http2FrameCodec;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A Bigtable server that does what a test tells it to, frame by frame: for all that a real one
 * cannot be made to do.
 *
 * <pre>{@code
 * try (ScriptedBigtable server = ScriptedBigtable.start()) {
 *   server.readRows()
 *       .next(Script.start().rows("a").reset(Http2Error.INTERNAL_ERROR))
 *       .always(Script.start().rows("b").ok());
 *   // a client for server.hostAndPort() reads; then
 *   assertThat(server.readRows().awaitCall(2).readRows().getRows()).isEqualTo(...);
 *   server.awaitOpenStreams(0);
 * }
 * }</pre>
 *
 * <p>It speaks plaintext HTTP/2 and knows all methods of {@code google.bigtable.v2.Bigtable} that
 * take one request. PingAndWarm answers OK unless it is told otherwise; a call of another method
 * that has no script gets status INTERNAL, "no script". What a client does is kept: {@link
 * #calls()} and {@link #connections()}. All methods may be called from any thread; one event loop
 * does the work.
 */
public final class ScriptedBigtable implements AutoCloseable {
  private static final int LARGEST_HEADERS = 256 << 10;

  private final MultiThreadIoEventLoopGroup group;
  private final Channel listener;
  private final Map<String, MethodDescriptor<?, ?>> methods = new HashMap<>();
  private final Map<String, Route> routes = new HashMap<>();
  private final List<ScriptedCall> calls = new ArrayList<>();
  private final List<ServerLink> links = new CopyOnWriteArrayList<>();
  private final AtomicBoolean closed = new AtomicBoolean();
  // of the event loop
  private final Map<String, Integer> callsOfMethod = new HashMap<>();

  private ScriptedBigtable(Builder settings) {
    for (MethodDescriptor<?, ?> method : BigtableGrpc.getServiceDescriptor().getMethods()) {
      if (method.getType().clientSendsOneMessage()) {
        methods.put("/" + method.getFullMethodName(), method);
        String name = String.valueOf(method.getBareMethodName());
        routes.put(name, new Route(name, this::calls));
      }
    }
    pingAndWarm().always(Script.start().message(PingAndWarmResponse.getDefaultInstance()).ok());
    group =
        new MultiThreadIoEventLoopGroup(
            1, new DefaultThreadFactory("timebound-scripted", true), NioIoHandler.newFactory());
    listener =
        new ServerBootstrap()
            .group(group)
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, 1024)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childHandler(
                new ChannelInitializer<Channel>() {
                  @Override
                  protected void initChannel(Channel channel) {
                    accept(channel, settings);
                  }
                })
            .bind(new InetSocketAddress("127.0.0.1", 0))
            .syncUninterruptibly()
            .channel();
  }

  /** Starts a server with default settings on a free port of the loopback address. */
  public static ScriptedBigtable start() {
    return builder().start();
  }

  /** Starts with other settings. */
  public static Builder builder() {
    return new Builder();
  }

  /** The port it listens on. */
  public int port() {
    return ((InetSocketAddress) listener.localAddress()).getPort();
  }

  /** The address to point a client at: {@code 127.0.0.1:port}. */
  public String hostAndPort() {
    return "127.0.0.1:" + port();
  }

  // ---- what it answers

  /** What ReadRows answers. */
  public Route readRows() {
    return route("ReadRows");
  }

  /** What SampleRowKeys answers. */
  public Route sampleRowKeys() {
    return route("SampleRowKeys");
  }

  /** What PingAndWarm answers: OK unless told otherwise. */
  public Route pingAndWarm() {
    return route("PingAndWarm");
  }

  /**
   * What the method of that bare name answers, {@code MutateRows} say.
   *
   * @throws IllegalArgumentException where the service has no such method
   */
  public Route route(String method) {
    Route route = routes.get(method);
    if (route == null) {
      throw new IllegalArgumentException(
          "method: " + method + " (expected: one of " + routes.keySet() + ")");
    }
    return route;
  }

  // ---- what it saw

  /** All calls, in the order in which their requests were complete. */
  public List<ScriptedCall> calls() {
    synchronized (calls) {
      return List.copyOf(calls);
    }
  }

  /** All connections that were ever made, in the order in which they were accepted. */
  public List<ScriptedConnection> connections() {
    return List.copyOf(links);
  }

  /** Connections that are open. */
  public int openConnections() {
    return (int) links.stream().filter(ServerLink::isOpen).count();
  }

  /** Calls that have not ended, over all connections. */
  public int openStreams() {
    return sum(ScriptedConnection::openStreams);
  }

  /** RST_STREAM frames that clients sent, over all connections. */
  public int resetsReceived() {
    return sum(ScriptedConnection::resetsReceived);
  }

  /** GOAWAY frames that clients sent, over all connections. */
  public int goAwaysReceived() {
    return sum(ScriptedConnection::goAwaysReceived);
  }

  /** PING frames that clients sent, over all connections. */
  public int pingsReceived() {
    return sum(ScriptedConnection::pingsReceived);
  }

  /** Waits, for 30 s at most, until exactly that many calls are open. */
  public void awaitOpenStreams(int n) {
    Await.until(
        n + " streams are open", () -> openStreams() == n, () -> openStreams() + " are: " + open());
  }

  /** Waits, for 30 s at most, until exactly that many connections are open. */
  public void awaitOpenConnections(int n) {
    Await.until(
        n + " connections are open", () -> openConnections() == n, () -> "they are " + links);
  }

  private List<ScriptedCall> open() {
    return calls().stream().filter(call -> call.end() == ScriptedCall.End.OPEN).toList();
  }

  private int sum(ToIntFunction<ScriptedConnection> of) {
    return links.stream().mapToInt(of).sum();
  }

  /**
   * Closes the port and every connection; when it returns no socket and no thread of it is left.
   * Closing twice does nothing.
   */
  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    listener.close().syncUninterruptibly();
    links.forEach(ServerLink::close);
    group.shutdownGracefully(0, 5, TimeUnit.SECONDS).syncUninterruptibly();
  }

  // ---- for its streams, on the event loop

  @Nullable MethodDescriptor<?, ?> method(String path) {
    return methods.get(path);
  }

  CallRecord began(
      ServerLink link,
      MethodDescriptor<?, ?> method,
      MessageLite request,
      Metadata metadata,
      int streamId) {
    String name = String.valueOf(method.getBareMethodName());
    int ofMethod = callsOfMethod.merge(name, 1, Integer::sum);
    synchronized (calls) {
      CallRecord call =
          new CallRecord(calls.size() + 1, ofMethod, name, request, metadata, link.id(), streamId);
      link.began(call);
      calls.add(call);
      return call;
    }
  }

  Script scriptFor(ScriptedCall call) {
    Script script = route(call.method()).scriptFor(call);
    return script != null
        ? script
        : Script.start().status(Status.INTERNAL.withDescription("no script for " + call));
  }

  private void accept(Channel channel, Builder settings) {
    ServerLink link = new ServerLink(links.size() + 1, channel);
    Http2Settings http2 =
        Http2Settings.defaultSettings()
            .maxHeaderListSize(LARGEST_HEADERS)
            .maxConcurrentStreams(settings.maxConcurrentStreams)
            .initialWindowSize(settings.initialWindow);
    Http2FrameCodec codec =
        Http2FrameCodecBuilder.forServer()
            .initialSettings(http2)
            .frameLogger(link.new Meter())
            .autoAckPingFrame(settings.answerPings)
            // the limits that Netty sets on a server would end a test of many resets; see maxResets
            .decoderEnforceMaxRstFramesPerWindow(settings.maxResets, settings.maxResetsSeconds)
            .encoderEnforceMaxRstFramesPerWindow(0, 0)
            .encoderEnforceMaxQueuedControlFrames(0)
            .build();
    link.codec(codec);
    channel.pipeline().addLast(codec, new Http2MultiplexHandler(new StreamInitializer(link)));
    links.add(link);
  }

  private final class StreamInitializer extends ChannelInitializer<Channel> {
    private final ServerLink link;

    StreamInitializer(ServerLink link) {
      this.link = link;
    }

    @Override
    public boolean isSharable() {
      return true;
    }

    @Override
    protected void initChannel(Channel stream) {
      stream.pipeline().addLast(new StreamHandler(ScriptedBigtable.this, link));
    }
  }

  /** Settings of a {@link ScriptedBigtable}. */
  public static final class Builder {
    private long maxConcurrentStreams = Integer.MAX_VALUE;
    private int initialWindow = 65_535;
    private boolean answerPings = true;
    private int maxResets;
    private int maxResetsSeconds;

    private Builder() {}

    /** How many streams the server allows on a connection at a time; by default 2^31-1. */
    public Builder maxConcurrentStreams(long streams) {
      if (streams < 0 || streams > 0xffffffffL) {
        throw new IllegalArgumentException(
            "maxConcurrentStreams: " + streams + " (expected: 0..2^32-1)");
      }
      maxConcurrentStreams = streams;
      return this;
    }

    /** Bytes of a request that a client may send on a stream unread; by default 65,535. */
    public Builder initialWindow(int bytes) {
      if (bytes < 1) {
        throw new IllegalArgumentException("initialWindow: " + bytes + " (expected: > 0)");
      }
      initialWindow = bytes;
      return this;
    }

    /** Whether PINGs are answered, by default they are: a keepalive runs out where not. */
    public Builder answerPings(boolean answer) {
      answerPings = answer;
      return this;
    }

    /**
     * Closes a connection by GOAWAY once its client has sent more resets than that in so many
     * seconds; by default none is.
     */
    public Builder maxResets(int resets, int seconds) {
      if (resets < 1 || seconds < 1) {
        throw new IllegalArgumentException(
            "maxResets: " + resets + " in " + seconds + " s (expected: both > 0)");
      }
      maxResets = resets;
      maxResetsSeconds = seconds;
      return this;
    }

    /** Starts the server on a free port of the loopback address. */
    public ScriptedBigtable start() {
      return new ScriptedBigtable(this);
    }
  }
}
