package dev.timebound.cas;

import dev.timebound.cas.CasConfig.Endpoint;
import io.grpc.ChannelCredentials;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** How the channels to the endpoints are made: what of gRPC's own ways is left on, and what not. */
final class EndpointChannels {
  private static final Duration KEEPALIVE_TIMEOUT = Duration.ofSeconds(20);

  /** A chunk or an answer larger than this is refused; servers send a few MiB at most. */
  private static final int MAX_MESSAGE_BYTES = 16 << 20;

  /** grpc-java turns its idle timeout off from 30 days on. */
  private static final long IDLE_TIMEOUT_OFF_DAYS = 30;

  private EndpointChannels() {}

  /** A channel that connects when it is asked to, and does not retry. */
  static NettyChannelBuilder to(
      Endpoint endpoint,
      ChannelCredentials credentials,
      Duration connectTimeout,
      Duration keepAliveTime) {
    return NettyChannelBuilder.forAddress(endpoint.host(), endpoint.port(), credentials)
        // Every failure must reach the ring's own rules. (CAS-4)
        .disableRetry()
        .disableServiceConfigLookUp()
        .defaultLoadBalancingPolicy("pick_first")
        .maxInboundMessageSize(MAX_MESSAGE_BYTES)
        .withOption(
            ChannelOption.CONNECT_TIMEOUT_MILLIS,
            (int) Math.min(Integer.MAX_VALUE, Math.max(1, connectTimeout.toMillis())))
        .idleTimeout(IDLE_TIMEOUT_OFF_DAYS, TimeUnit.DAYS)
        .keepAliveTime(keepAliveTime.toMillis(), TimeUnit.MILLISECONDS)
        .keepAliveTimeout(KEEPALIVE_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)
        .keepAliveWithoutCalls(false);
  }
}
