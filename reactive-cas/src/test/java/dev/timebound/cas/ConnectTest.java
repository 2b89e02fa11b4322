package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.grpc.GrpcCalls;
import dev.timebound.test.FaultProxy;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** Attempts to connect: that fail, and that bring a shard back. */
class ConnectTest extends Connecting {
  @Nested
  class NotThere {
    @Test
    @DisplayName("CAS-1 CAS-2 a closed port: the first call is told which, the next ones at once")
    void closedPort() {
      int port = refusingPort();
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
    void background() {
      int port = refusingPort();
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
    void trial() {
      int port = refusingPort();
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
}
