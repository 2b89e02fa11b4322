package dev.timebound.samples.kafka;

import dev.timebound.fetch.FetchClient;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.samples.kafka.group.Node;
import dev.timebound.samples.kafka.log.TopicLog;
import io.netty.channel.ChannelOption;
import io.netty.handler.codec.LengthFieldBasedFrameDecoder;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;
import reactor.netty.Connection;
import reactor.netty.DisposableServer;
import reactor.netty.NettyInbound;
import reactor.netty.NettyOutbound;
import reactor.netty.resources.LoopResources;
import reactor.netty.tcp.TcpServer;

/**
 * A server that speaks the Kafka protocol: what clients fetch goes through a {@link
 * PartitionFetcher}, so that a partition whose storage stalls does not starve the others.
 *
 * <p>Each connection is served one request after the other, as a broker does, and holds no more
 * than a few requests and one answer. A request that cannot be read, or is not served, ends its
 * connection. Nothing blocks. Thread-safe.
 */
public final class KafkaGateway {
  /** Requests of a connection that are read before it is their turn. */
  static final int READ_AHEAD = 2;

  private static final Logger LOG = LoggerFactory.getLogger(KafkaGateway.class);
  private static final int LENGTH = 4;
  private static final Duration STOP = Duration.ofSeconds(5);

  private final GatewayParts parts;
  private final Apis apis;
  private final LoopResources loops;
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
  private volatile @Nullable DisposableServer server;
  private volatile boolean stopped;

  private KafkaGateway(GatewayParts parts, LoopResources loops) {
    this.parts = parts;
    this.apis = parts.apis();
    this.loops = loops;
  }

  /** A gateway over this log; it listens once it was started. */
  public static KafkaGatewayBuilder builder(TopicLog log) {
    return new KafkaGatewayBuilder(log);
  }

  static Mono<KafkaGateway> start(GatewayParts parts) {
    KafkaGateway gateway = new KafkaGateway(parts, LoopResources.create("kafka-gateway", 2, true));
    return TcpServer.create()
        .runOn(gateway.loops)
        .host(parts.settings().host())
        .port(parts.settings().port())
        .childOption(ChannelOption.SO_SNDBUF, parts.settings().sendBufferBytes())
        .doOnConnection(gateway::accepted)
        .handle(gateway::serve)
        .bind()
        .map(gateway::listens)
        .onErrorResume(error -> gateway.stop().then(Mono.error(error)));
  }

  private KafkaGateway listens(DisposableServer bound) {
    server = bound;
    LOG.info("Listening on {}:{}", bound.host(), bound.port());
    return this;
  }

  private void accepted(Connection connection) {
    connections.add(connection);
    connection.onDispose(() -> connections.remove(connection));
    connection.addHandlerLast(
        new LengthFieldBasedFrameDecoder(
            parts.settings().maxFrameBytes() + LENGTH, 0, LENGTH, 0, LENGTH));
    connection.onReadIdle(parts.settings().idleTime().toMillis(), connection::dispose);
    if (stopped) {
      connection.dispose();
    }
  }

  private Mono<Void> serve(NettyInbound in, NettyOutbound out) {
    return Mono.using(
        parts.fetcher()::client, client -> serve(in, out, client), FetchClient::close);
  }

  private Mono<Void> serve(NettyInbound in, NettyOutbound out, FetchClient client) {
    List<Connection> one = new ArrayList<>(1);
    in.withConnection(one::add);
    Connection connection = one.get(0);
    return new ClientConnection(apis, READ_AHEAD, session(connection, client))
        .serve(in, out, connection.onDispose());
  }

  private Session session(Connection connection, FetchClient client) {
    int port = ((InetSocketAddress) connection.channel().localAddress()).getPort();
    return new Session(
        String.valueOf(connection.channel().remoteAddress()),
        parts.settings().node(port),
        parts.fetches().apply(client));
  }

  /** Where it listens. */
  public int port() {
    DisposableServer bound = server;
    return bound == null ? 0 : bound.port();
  }

  /** As clients take it for {@code bootstrap.servers}. */
  public String bootstrapServers() {
    Node node = parts.settings().node(port());
    return node.host() + ":" + node.port();
  }

  /** Clients connected now. */
  public int connections() {
    return connections.size();
  }

  /** Groups that have members now, or are about to. */
  public int groups() {
    return parts.groups().size();
  }

  /**
   * Listens no more, ends all connections, which cancels what is read for them, and then its
   * threads. The log is left open.
   */
  public Mono<Void> stop() {
    return Mono.defer(
        () -> {
          stopped = true;
          DisposableServer bound = server;
          if (bound != null) {
            bound.dispose();
          }
          List<Mono<Void>> ends = new ArrayList<>();
          for (Connection connection : connections) {
            ends.add(connection.onDispose());
            connection.dispose();
          }
          return Mono.whenDelayError(ends)
              .timeout(STOP)
              .onErrorComplete()
              .then(Mono.fromRunnable(parts::close))
              .then(loops.disposeLater(Duration.ZERO, STOP));
        });
  }
}
