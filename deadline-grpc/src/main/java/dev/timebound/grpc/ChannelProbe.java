package dev.timebound.grpc;

import io.grpc.Channel;
import io.grpc.Metadata;
import reactor.core.publisher.Mono;

/**
 * How the pool asks whether one channel's connection lives, and warms a new one. Handed in by the
 * adapter: for Bigtable it is PingAndWarm.
 *
 * <p>What counts as an answer is the pool's to see: any status that the server sends back, an error
 * too, told by its trailers having come in. (BT-13)
 */
public interface ChannelProbe {
  /**
   * What a probe needs before its own time limit starts, its credentials say, as headers to send.
   * Never empty. An error or no answer in time means that the probe could not be sent: it counts
   * for nothing. (BT-14)
   */
  default Mono<Metadata> prepare() {
    return Mono.fromSupplier(Metadata::new);
  }

  /**
   * A unary call on that very channel. Cold; cancelled when the probe's limit passes; its result is
   * not looked at. Its signals come on the connection's event loop, unless its options name an
   * executor: what follows there must not block.
   */
  Mono<?> call(Channel channel, Metadata headers);
}
