package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import dev.timebound.grpc.GrpcCalls;
import dev.timebound.health.HealthEngine;
import dev.timebound.test.FaultProxy;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** What becomes of calls and of endpoints. */
class ConnectionTest extends Connecting {

  @Nested
  class Endpoints {
    @Test
    @DisplayName("CAS-1 several endpoints are used in turn")
    void inTurn() {
      PlainServer a = closing(PlainServer.start());
      PlainServer b = closing(PlainServer.start());
      CasRing ring = ring(s -> s, at(a.port()), at(b.port()));

      until(
          "both are used",
          () -> {
            assertThat(ends(call(ring)).join()).isNull();
            return a.asked.get() > 0 && b.asked.get() > 0;
          });
    }

    @Test
    @DisplayName("CAS-1 one dead endpoint of a shard fails no call")
    void oneDead() {
      PlainServer alive = closing(PlainServer.start());
      CasRing ring = ring(s -> s, at(refusingPort()), at(alive.port()));

      for (int i = 0; i < 10; i++) {
        assertThat(ends(call(ring)).join()).isNull();
      }
    }

    @Test
    @DisplayName("CAS-1 with every endpoint failed the error tells of each")
    void allDead() {
      int one = refusingPort();
      int two = refusingPort();
      CasRing ring = ring(s -> s.scheduler(time), at(one), at(two));

      assertThat(failure(call(ring)))
          .hasMessageContaining("127.0.0.1:" + one)
          .hasMessageContaining("127.0.0.1:" + two);
      failsAtOnce(call(ring));
    }
  }

  @Nested
  class Calls {
    /** Begins it; done when it ends. */
    private static <R> CompletableFuture<Status> started(ClientCall<?, R> call) {
      CompletableFuture<Status> end = new CompletableFuture<>();
      call.start(
          new ClientCall.Listener<R>() {
            @Override
            public void onClose(Status status, Metadata trailers) {
              end.complete(status);
            }
          },
          new Metadata());
      return end.orTimeout(LONG.toSeconds(), TimeUnit.SECONDS);
    }

    private ManagedChannel raw(int port) {
      return NettyChannelBuilder.forAddress("127.0.0.1", port).usePlaintext().build();
    }

    @Test
    @DisplayName("CAS-1 a call that waits in a channel ends when the channel is retired")
    void waitsInTheChannel() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      proxy.acceptAndSayNothing();
      EndpointChannel channel =
          new EndpointChannel(
              new RawChannel(raw(proxy.port()), () -> Integer.MAX_VALUE),
              "s0 at x",
              1,
              System::nanoTime,
              silent -> {});
      ClientCall<FindMissingBlobsRequest, FindMissingBlobsResponse> call =
          channel.newCall(
              ContentAddressableStorageGrpc.getFindMissingBlobsMethod(), CallOptions.DEFAULT);
      CompletableFuture<Status> end = started(call);
      assertThat(channel.openCalls()).isEqualTo(1);

      channel.retire(Status.UNAVAILABLE.withDescription("no more"));

      assertThat(end.join().getDescription()).isEqualTo("no more");
      until("the channel is gone", channel::isTerminated);
    }

    @Test
    @DisplayName("CAS-1 a call that waits in a channel that was lost fails with the next attempt")
    void waitsInTheLostChannel() {
      PlainServer server = closing(PlainServer.start());
      FaultProxy proxy = proxyTo(server);
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      assertThat(ends(call(ring)).join()).isNull();
      List<CompletableFuture<@Nullable Throwable>> waits = new ArrayList<>();

      gate(ring)
          .channel(false)
          .subscribe(
              channel -> { // it has its place, and has not set out
                proxy.acceptAndSayNothing();
                proxy.cut();
                until("the next attempt is under way", () -> proxy.accepted() == 2);
                waits.add(ends(missing(channel)));
                until("gRPC connects for it too", () -> proxy.accepted() == 3);
              });
      assertThat(waits).singleElement().satisfies(call -> assertThat(call).isNotDone());
      time.advanceTimeBy(Duration.ofSeconds(5));

      assertThat(waits.get(0).join())
          .hasMessageContaining("UNAVAILABLE: s0 at 127.0.0.1:" + proxy.port())
          .hasMessageContaining("not connected within PT5S");
      until("no call is open", () -> ring.openCalls() == 0);
    }

    private Mono<FindMissingBlobsResponse> missing(Channel channel) {
      return GrpcCalls.unary(
          channel,
          ContentAddressableStorageGrpc.getFindMissingBlobsMethod(),
          CallOptions.DEFAULT,
          FindMissingBlobsRequest.getDefaultInstance());
    }

    @Test
    @DisplayName("CAS-33 a call that is cancelled keeps nothing of what came in before it broke")
    void leftovers() {
      PlainServer server = closing(PlainServer.start());
      FaultProxy proxy = proxyTo(server);
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      Channel channel = gate(ring).channel(false).block(LONG);
      assertThat(channel).isNotNull();
      ClientCall<ReadRequest, ReadResponse> call =
          channel.newCall(ByteStreamGrpc.getReadMethod(), CallOptions.DEFAULT);
      CompletableFuture<Status> end = started(call);
      call.sendMessage(ReadRequest.getDefaultInstance());
      call.halfClose();
      until("the stream runs", () -> !server.reads.isEmpty());
      long before = proxy.bytesToClient();
      String text = "x".repeat(10_000);
      server.reads.get(0).onNext(PlainServer.chunk(text));
      until("it has come in", () -> proxy.bytesToClient() >= before + text.length());
      proxy.refuse();
      proxy.cut();
      until("it is lost", () -> proxy.openClientSockets() == 0);
      Patience.rest();
      assertThat(end).as("nobody has asked for what came in").isNotDone();

      call.cancel("not wanted any more", null);

      assertThat(end.join().isOk()).isFalse();
    }

    @Test
    @DisplayName("CAS-4 CANCELLED or INTERNAL from a connection that broke is UNAVAILABLE")
    void broken() {
      PlainServer server = closing(PlainServer.start());
      FaultProxy proxy = proxyTo(server);
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      Channel channel = gate(ring).channel(false).block(LONG);
      assertThat(channel).isNotNull();
      CompletableFuture<@Nullable Throwable> read =
          ends(
              GrpcCalls.serverStreaming(
                      channel,
                      ByteStreamGrpc.getReadMethod(),
                      CallOptions.DEFAULT,
                      ReadRequest.getDefaultInstance())
                  .then());
      until("the stream runs", () -> !server.reads.isEmpty());

      server.close(); // each open call is reset: CANCELLED

      assertThat(read.join())
          .hasMessageContaining("UNAVAILABLE")
          .hasMessageContaining("s0 at 127.0.0.1:" + proxy.port());
    }

    @Test
    @DisplayName("CAS-1 after the ring is closed calls fail at once, and those that wait are told")
    void closed() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      proxy.acceptAndSayNothing();
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      CompletableFuture<@Nullable Throwable> waits = ends(gate(ring).channel(false));

      ring.close();

      assertThat(waits.join()).hasMessageContaining("the ring is closed");
      failsAtOnce(gate(ring).channel(false));
      failsAtOnce(gate(ring).channel(true));
      until("no connection is left", () -> proxy.openClientSockets() == 0);
    }
  }

  @Test
  @DisplayName(
      "CAS-1 a ring that cannot be built leaves nothing behind, in an engine of others too")
  void notBuilt() {
    HealthEngine engine = HealthEngine.builder().scheduler(time).build();
    closing(engine);
    ChannelCredentials unknown =
        new ChannelCredentials() {
          @Override
          public ChannelCredentials withoutBearerTokens() {
            return this;
          }
        };

    assertThatThrownBy(
            () -> ring(b -> b.scheduler(time).healthEngine(engine).credentials(unknown), at(1)))
        .isInstanceOf(IllegalArgumentException.class);

    assertThat(engine.groups()).isEmpty();
  }

  @Test
  @DisplayName("CAS-1 the builder says what it expected")
  void builder() {
    CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:1")));
    assertThatThrownBy(() -> CasRing.builder(config).gapTimeout(Duration.ZERO))
        .hasMessage("gapTimeout: PT0S (expected: > 0)");
    assertThatThrownBy(() -> CasRing.builder(config).keepAliveTime(Duration.ofSeconds(1)))
        .hasMessage("keepAliveTime: PT1S (expected: >= PT10S)");
    assertThatThrownBy(() -> CasRing.builder(config).rpcTimeout(Duration.ofSeconds(-1)))
        .hasMessage("rpcTimeout: PT-1S (expected: >= 0)");
    assertThatThrownBy(() -> CasRing.builder(config).retries(-1))
        .hasMessage("retries: -1 (expected: 0 to 100)");
    assertThatThrownBy(() -> CasRing.builder(config).name(" "))
        .hasMessage("name: ' ' (expected: not blank)");
    assertThatThrownBy(() -> CasRing.builder(config).selector(ShardSelector.weighted(1, 1)))
        .hasMessage("selector: for 2 shards (expected: 1 shards)");
  }
}
