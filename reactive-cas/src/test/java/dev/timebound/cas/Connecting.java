package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.cas.kit.HeldPort;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import dev.timebound.health.Claim;
import dev.timebound.test.FaultProxy;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

/** What the tests of connections have in common: one shard, and that nothing is left. */
abstract class Connecting {
  private final List<AutoCloseable> toClose = new ArrayList<>();
  final VirtualTimeScheduler time = VirtualTimeScheduler.create();

  @AfterEach
  void nothingIsLeft() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
    time.dispose();
    until(
        "no thread is left",
        () -> Thread.getAllStackTraces().keySet().stream().noneMatch(Connecting::isOurs));
  }

  private static boolean isOurs(Thread thread) {
    return thread.getName().startsWith("timebound-cas");
  }

  <T extends AutoCloseable> T closing(T part) {
    toClose.add(part);
    return part;
  }

  /** A ring of one shard. */
  CasRing ring(UnaryOperator<CasRingBuilder> settings, Endpoint... endpoints) {
    CasConfig config = new CasConfig(List.of(new CasConfig.Shard("s0", 1, List.of(endpoints), "")));
    return closing(settings.apply(CasRing.builder(config)).build());
  }

  static Endpoint at(int port) {
    return new Endpoint("127.0.0.1", port);
  }

  FaultProxy proxyTo(PlainServer server) {
    return closing(FaultProxy.to("127.0.0.1", server.port()));
  }

  static ShardConnection gate(CasRing ring) {
    return ring.shards().all().get(0).connection();
  }

  static Mono<FindMissingBlobsResponse> call(CasRing ring) {
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

  static StatusRuntimeException failure(Mono<?> call) {
    return (StatusRuntimeException) ends(call).join();
  }

  /** How a Mono ends: null where it succeeds. */
  static CompletableFuture<@Nullable Throwable> ends(Mono<?> call) {
    CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();
    call.subscribe(value -> end.complete(null), end::complete, () -> end.complete(null));
    return end.orTimeout(LONG.toSeconds(), TimeUnit.SECONDS);
  }

  /** The very subscription fails: nothing waits. */
  static void failsAtOnce(Mono<?> call) {
    CompletableFuture<@Nullable Throwable> end = ends(call);
    assertThat(end).isDone();
    assertThat(end.join())
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE));
  }

  /** A listening socket whose queue is full: the kernel drops what is sent to connect to it. */
  int droppingSyns() throws IOException {
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

  /** Until the test's end; a server may listen there. */
  int refusingPort() {
    return closing(HeldPort.free()).number();
  }
}
