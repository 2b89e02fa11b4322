package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import dev.timebound.grpc.GrpcCalls;
import dev.timebound.health.Claim;
import dev.timebound.health.HealthEngine;
import dev.timebound.test.FaultProxy;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

class ConnectionTest {
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();

  @AfterEach
  void nothingIsLeft() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
    time.dispose();
    until(
        "no thread is left",
        () -> Thread.getAllStackTraces().keySet().stream().noneMatch(ConnectionTest::isOurs));
  }

  private static boolean isOurs(Thread thread) {
    return thread.getName().startsWith("timebound-cas");
  }

  private <T extends AutoCloseable> T closing(T part) {
    toClose.add(part);
    return part;
  }

  /** A ring of one shard. */
  private CasRing ring(UnaryOperator<CasRingBuilder> settings, Endpoint... endpoints) {
    CasConfig config = new CasConfig(List.of(new CasConfig.Shard("s0", 1, List.of(endpoints), "")));
    return closing(settings.apply(CasRing.builder(config)).build());
  }

  private static Endpoint at(int port) {
    return new Endpoint("127.0.0.1", port);
  }

  private FaultProxy proxyTo(PlainServer server) {
    return closing(FaultProxy.to("127.0.0.1", server.port()));
  }

  private static ShardConnection gate(CasRing ring) {
    return ring.shards().all().get(0).connection();
  }

  private static Mono<FindMissingBlobsResponse> call(CasRing ring) {
    return Mono.defer(
        () -> {
          Claim<Shard> claim = ring.shards().claims(ring.shards().all()).next();
          assertThat(claim).isNotNull();
          return ring.calls()
              .unary(
                  claim,
                  ContentAddressableStorageGrpc.getFindMissingBlobsMethod(),
                  FindMissingBlobsRequest.getDefaultInstance(),
                  1);
        });
  }

  private static StatusRuntimeException failure(Mono<?> call) {
    return (StatusRuntimeException) ends(call).join();
  }

  /** How a Mono ends: null where it succeeds. */
  private static CompletableFuture<@Nullable Throwable> ends(Mono<?> call) {
    CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();
    call.subscribe(value -> end.complete(null), end::complete, () -> end.complete(null));
    return end.orTimeout(LONG.toSeconds(), TimeUnit.SECONDS);
  }

  /** The very subscription fails: nothing waits. */
  private static void failsAtOnce(Mono<?> call) {
    CompletableFuture<@Nullable Throwable> end = ends(call);
    assertThat(end).isDone();
    assertThat(end.join())
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE));
  }

  /** A listening socket whose queue is full: the kernel drops what is sent to connect to it. */
  private int droppingSyns() throws IOException {
    ServerSocket full = closing(new ServerSocket());
    full.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1);
    for (int i = 0; i < 4; i++) {
      Socket filler = closing(new Socket());
      try {
        filler.connect(full.getLocalSocketAddress(), 200);
      } catch (IOException dropped) {
        return full.getLocalPort();
      }
    }
    throw new IllegalStateException("the queue does not fill");
  }

  private static int closedPort() throws IOException {
    try (ServerSocket free = new ServerSocket(0)) {
      return free.getLocalPort();
    }
  }

  @Nested
  class NotThere {
    @Test
    @DisplayName("CAS-1 CAS-2 a closed port: the first call is told which, the next ones at once")
    void closedPort() throws IOException {
      int port = ConnectionTest.closedPort();
      CasRing ring = ring(b -> b.scheduler(time), at(port));

      StatusRuntimeException first = failure(call(ring));

      assertThat(first.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(first).hasMessageContaining("s0 at 127.0.0.1:" + port);
      assertThat(first).hasMessageContaining("refused");
      failsAtOnce(call(ring));
      assertThat(ring.openCalls()).isZero();
    }

    @Test
    @DisplayName("CAS-2 one that accepts and says nothing ends with the connect limit")
    void saysNothing() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      proxy.acceptAndSayNothing();
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      CompletableFuture<@Nullable Throwable> first = ends(call(ring));
      until("it is accepted", () -> proxy.accepted() == 1);

      time.advanceTimeBy(Duration.ofMillis(4_999));
      assertThat(first).isNotDone();
      time.advanceTimeBy(Duration.ofMillis(1));

      assertThat(first.join())
          .hasMessageContaining("s0 at 127.0.0.1:" + proxy.port())
          .hasMessageContaining("not connected within PT5S");
      failsAtOnce(call(ring));
    }

    @Test
    @DisplayName("CAS-2 one that drops SYNs ends with the connect limit")
    void dropsSyns() throws IOException {
      CasRing ring = ring(b -> b.connectTimeout(Duration.ofMillis(700)), at(droppingSyns()));

      StatusRuntimeException first = failure(call(ring));

      assertThat(first.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      failsAtOnce(call(ring));
    }

    @Test
    @DisplayName("CAS-1 all who wait for the first attempt fail with it")
    void queued() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      proxy.acceptAndSayNothing();
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      List<CompletableFuture<@Nullable Throwable>> all = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        all.add(ends(call(ring)));
      }

      time.advanceTimeBy(Duration.ofSeconds(5));

      for (CompletableFuture<@Nullable Throwable> each : all) {
        assertThat(each.join()).hasMessageContaining("UNAVAILABLE");
      }
    }

    @Test
    @DisplayName("CAS-1 calls fail at once also while the next attempt is under way")
    void nextUnderWay() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      proxy.acceptAndSayNothing();
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      until("it is accepted", () -> proxy.accepted() == 1);
      time.advanceTimeBy(Duration.ofSeconds(5));
      time.advanceTimeBy(Duration.ofSeconds(1)); // the pause: at most 750 ms
      until("the next attempt is under way", () -> proxy.accepted() == 2);

      failsAtOnce(gate(ring).channel(false));
    }

    @Test
    @DisplayName("CAS-2 a name that does not resolve is told of")
    void noSuchName() {
      CasRing ring = ring(b -> b, new Endpoint("nowhere.invalid", 1));

      assertThat(failure(call(ring)))
          .hasMessageContaining("UNAVAILABLE")
          .hasMessageContaining("s0 at nowhere.invalid:1");
      failsAtOnce(call(ring));
    }
  }

  @Nested
  class Revival {
    @Test
    @DisplayName("CAS-1 a background attempt that connects clears the failure, with no restart")
    void background() throws IOException {
      int port = ConnectionTest.closedPort();
      CasRing ring = ring(b -> b.scheduler(time), at(port));
      failure(call(ring));

      PlainServer server = closing(PlainServer.at(port));
      failsAtOnce(gate(ring).channel(false));
      time.advanceTimeBy(Duration.ofSeconds(1));

      until("it is connected", () -> ends(gate(ring).channel(false)).join() == null);
      assertThat(ends(call(ring)).join()).isNull();
      assertThat(server.asked).hasValue(1);
    }

    @Test
    @DisplayName(
        "CAS-2a a trial is not answered from the old failure: it connects and waits for it")
    void trial() throws IOException {
      int port = ConnectionTest.closedPort();
      CasRing ring = ring(b -> b.scheduler(time), at(port));
      failure(call(ring));
      closing(PlainServer.at(port));

      assertThat(ends(gate(ring).channel(true)).join()).isNull();
    }

    @Test
    @DisplayName(
        "CAS-2a a trial connects anew in place of an attempt that began before the revival")
    void trialInPlaceOfAnAttempt() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      proxy.acceptAndSayNothing();
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      until("the first attempt hangs", () -> proxy.accepted() == 1);
      proxy.accept();

      assertThat(ends(gate(ring).channel(true)).join()).isNull();
      assertThat(proxy.accepted()).isEqualTo(2);
    }

    @Test
    @DisplayName("CAS-2a CAS-5 a trial connects anew in place of a connection that is half open")
    void trialInPlaceOfAConnection() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      assertThat(ends(call(ring)).join()).isNull();
      proxy.freezeEstablished();

      assertThat(ends(gate(ring).channel(true)).join()).isNull();
      assertThat(ends(call(ring)).join()).isNull();
      assertThat(proxy.accepted()).isEqualTo(2);
    }

    @Test
    @DisplayName("CAS-2a a trial that meets the same fault ends with the connect limit")
    void trialFails() {
      FaultProxy proxy = proxyTo(closing(PlainServer.start()));
      proxy.acceptAndSayNothing();
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      until("the first attempt hangs", () -> proxy.accepted() == 1);
      time.advanceTimeBy(Duration.ofSeconds(5));

      CompletableFuture<@Nullable Throwable> trial = ends(gate(ring).channel(true));
      failsAtOnce(gate(ring).channel(false));
      time.advanceTimeBy(Duration.ofMillis(4_999));
      assertThat(trial).isNotDone();
      time.advanceTimeBy(Duration.ofMillis(1));

      assertThat(trial.join()).hasMessageContaining("not connected within PT5S");
    }

    @Test
    @DisplayName("CAS-1 a lost connection is made anew at once")
    void lost() {
      PlainServer server = closing(PlainServer.start());
      FaultProxy proxy = proxyTo(server);
      CasRing ring = ring(b -> b.scheduler(time), at(proxy.port()));
      assertThat(ends(call(ring)).join()).isNull();

      proxy.cut();

      until("it has connected again", () -> proxy.accepted() == 2);
      until("a call succeeds", () -> ends(call(ring)).join() == null);
    }

    @Test
    @DisplayName("CAS-1 a server that goes away: its streams run on while new calls fail at once")
    void goAway() {
      PlainServer server = closing(PlainServer.start());
      CasRing ring = ring(b -> b.scheduler(time), at(server.port()));
      Channel channel = gate(ring).channel(false).block(LONG);
      assertThat(channel).isNotNull();
      List<String> received = new CopyOnWriteArrayList<>();
      CompletableFuture<@Nullable Throwable> read = new CompletableFuture<>();
      GrpcCalls.serverStreaming(
              channel,
              ByteStreamGrpc.getReadMethod(),
              CallOptions.DEFAULT,
              ReadRequest.getDefaultInstance())
          .subscribe(
              chunk -> received.add(chunk.getData().toStringUtf8()),
              read::complete,
              () -> read.complete(null));
      until("the stream runs", () -> received.equals(List.of("first")));

      server.goAway();
      until(
          "new calls fail",
          () -> {
            CompletableFuture<@Nullable Throwable> end = ends(gate(ring).channel(false));
            return end.isDone() && end.join() != null;
          });
      server.reads.get(0).onNext(PlainServer.chunk("second"));
      server.reads.get(0).onCompleted();

      assertThat(read.orTimeout(20, TimeUnit.SECONDS).join()).isNull();
      assertThat(received).containsExactly("first", "second");
      until("the old channel is let go", () -> ring.openCalls() == 0);
    }
  }

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
    void oneDead() throws IOException {
      PlainServer alive = closing(PlainServer.start());
      CasRing ring = ring(s -> s, at(ConnectionTest.closedPort()), at(alive.port()));

      for (int i = 0; i < 10; i++) {
        assertThat(ends(call(ring)).join()).isNull();
      }
    }

    @Test
    @DisplayName("CAS-1 with every endpoint failed the error tells of each")
    void allDead() throws IOException {
      int one = ConnectionTest.closedPort();
      int two = ConnectionTest.closedPort();
      CasRing ring = ring(s -> s.scheduler(time), at(one), at(two));

      assertThat(failure(call(ring)))
          .hasMessageContaining("127.0.0.1:" + one)
          .hasMessageContaining("127.0.0.1:" + two);
      failsAtOnce(call(ring));
    }
  }

  @Nested
  class Calls {
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
      CompletableFuture<Status> end = new CompletableFuture<>();
      ClientCall<FindMissingBlobsRequest, FindMissingBlobsResponse> call =
          channel.newCall(
              ContentAddressableStorageGrpc.getFindMissingBlobsMethod(), CallOptions.DEFAULT);
      call.start(
          new ClientCall.Listener<>() {
            @Override
            public void onClose(Status status, Metadata trailers) {
              end.complete(status);
            }
          },
          new Metadata());
      assertThat(channel.openCalls()).isEqualTo(1);

      channel.retire(Status.UNAVAILABLE.withDescription("no more"));

      assertThat(end.orTimeout(20, TimeUnit.SECONDS).join().getDescription()).isEqualTo("no more");
      until("the channel is gone", channel::isTerminated);
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
