package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static dev.timebound.grpc.BridgeServer.await;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import dev.timebound.grpc.FakeCalls.FakeCall;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

class GrpcCallsDemandTest {
  private static final int LARGE = 300 * 1024;

  private static Flux<byte[]> stream(Channel channel) {
    return GrpcCalls.serverStreaming(channel, STREAM, CallOptions.DEFAULT, REQUEST);
  }

  @Nested
  @DisplayName("BT-42 nothing is asked for before downstream asks")
  class Unasked {
    @Test
    @DisplayName("BT-42 a stream nobody asks from is open, and asks for nothing")
    void unread() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1_000_000, 1000))) {
        Probe<byte[]> probe = new Probe<>();
        stream(server.channel).subscribe(probe);
        await("the call", () -> server.started.get() == 1);
        // a second call on the connection has been answered meanwhile
        assertThat(stream(server.channel).take(1).collectList().block()).hasSize(1);
        assertThat(probe.got).isEmpty();
        assertThat(server.asked).as("the second call's alone").hasValue(2);
        probe.cancel();
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("BT-37 an unread stream makes the server send its HTTP/2 window and little more")
    void window() {
      // The server counts a message as sent when it has gone to its own transport, which takes
      // what is left of the window and at most 32 KiB of its own beyond it.
      int message = 1000;
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1_000_000, message))) {
        Probe<byte[]> probe = new Probe<>();
        stream(server.channel).subscribe(probe);
        await("a full window", () -> server.sent.get() * (message + 5) >= 256 * 1024);
        stream(server.channel).take(1).blockLast();
        assertThat(server.sent.get() * (message + 5L)).isLessThan(2 * (256 + 64) * 1024 + 1);
        probe.cancel();
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("BT-42 a unary call asks for its answer when downstream does")
    void unary() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      GrpcCalls.unary(fake, UNARY, CallOptions.DEFAULT, REQUEST).subscribe(probe);
      assertThat(fake.only().log).containsExactly("start", "message", "halfClose");
      assertThat(fake.only().asked).hasValue(0);
      probe.request(1);
      probe.request(1);
      assertThat(fake.only().asked).hasValue(2);
    }
  }

  @Nested
  @DisplayName("BT-37 what is ahead of the consumer is bounded")
  class Bounded {
    @Test
    @DisplayName("BT-37 a subscriber that asks for 5 of 100,000: 6 are asked for, 1 is held")
    void few() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(100_000, 100))) {
        Probe<byte[]> probe = new Probe<>();
        stream(server.channel).subscribe(probe);
        probe.request(5);
        await("all that was asked for", () -> server.delivered.get() == 6);
        assertThat(probe.got).hasSize(5);
        assertThat(server.requests).containsExactly(2, 4);
        probe.cancel();
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("BT-42 large messages: one ahead after the first two, all the way")
    void large() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(40, LARGE))) {
        List<Long> ahead = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger got = new AtomicInteger();
        List<byte[]> all =
            stream(server.channel)
                .doOnNext(message -> ahead.add(server.asked.get() - got.incrementAndGet()))
                .collectList()
                .block();
        assertThat(all).hasSize(40);
        assertThat(ahead.subList(0, 2)).allMatch(n -> n <= 2);
        assertThat(ahead.subList(2, 40)).allMatch(n -> n <= 1);
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("BT-42 the budget is a setting")
    void budget() {
      CallOptions small = CallOptions.DEFAULT.withOption(GrpcCalls.REQUEST_AHEAD_BYTES, 3000);
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(200, 1000))) {
        AtomicInteger got = new AtomicInteger();
        List<Long> ahead = Collections.synchronizedList(new ArrayList<>());
        GrpcCalls.serverStreaming(server.channel, STREAM, small, REQUEST)
            .doOnNext(message -> ahead.add(server.asked.get() - got.incrementAndGet()))
            .blockLast();
        assertThat(ahead).hasSize(200).allMatch(n -> n <= 3).contains(3L);
      }
    }

    @Test
    @DisplayName(
        "BT-42 a large message in a stream of small ones: nothing more until all is used up")
    void jump() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      stream(fake).subscribe(probe);
      probe.request(Long.MAX_VALUE);
      FakeCall call = fake.only();
      for (int i = 0; i < 200; i++) {
        call.deliver(new byte[100]);
      }
      assertThat(call.outstanding()).isBetween(16, 32);
      int asked = call.asked.get();
      call.deliver(new byte[LARGE]);
      while (call.outstanding() > 1) {
        call.deliver(new byte[LARGE]);
      }
      assertThat(call.asked).hasValue(asked);
      for (int i = 0; i < 20; i++) {
        call.deliver(new byte[LARGE]);
        assertThat(call.outstanding()).isEqualTo(1);
      }
      for (int i = 0; i < 400; i++) {
        call.deliver(new byte[100]);
      }
      assertThat(call.outstanding()).as("small again").isBetween(16, 32);
    }

    @Test
    @DisplayName(
        "BT-37 messages of one size: what is ahead never exceeds the budget's count of them")
    void everySize() {
      for (int size : new int[] {1, 1000, 8192, 10_000, 50_000, 100_000, 262_144, 500_000}) {
        int most = Math.max(1, Math.min(32, 262_144 / size));
        FakeCalls fake = new FakeCalls();
        Probe<byte[]> probe = new Probe<>();
        stream(fake).subscribe(probe);
        probe.request(Long.MAX_VALUE);
        byte[] message = new byte[size];
        for (int i = 0; i < 300; i++) {
          fake.only().deliver(message);
          assertThat(fake.only().outstanding()).isBetween(1, i == 0 ? 2 : Math.max(most, 1));
        }
      }
    }
  }

  @Nested
  @DisplayName("GR-1 demand of every shape")
  class Shapes {
    @Test
    @DisplayName(
        "GR-1 request(1) from onNext, 100,000 times, on the listener's stack: no recursion")
    void fromOnNext() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      AtomicInteger depth = new AtomicInteger();
      probe.onEach =
          p -> {
            assertThat(depth.incrementAndGet()).isEqualTo(1);
            p.got.clear();
            p.request(1);
            depth.decrementAndGet();
          };
      stream(fake).subscribe(probe);
      probe.request(1);
      for (int i = 0; i < 100_000; i++) {
        fake.only().deliver(REQUEST);
      }
      fake.only().close(Status.OK);
      assertThat(probe.completed).isTrue();
      assertThat(probe.broken).isEmpty();
      assertThat(fake.only().outstanding()).isBetween(1, 32);
    }

    @Test
    @DisplayName("GR-1 a request in onSubscribe counts once the call has started")
    void inOnSubscribe() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      probe.onSubscribed = p -> p.request(4);
      stream(fake).subscribe(probe);
      assertThat(fake.only().asked).hasValue(2);
      assertThat(fake.only().log).containsExactly("start", "message", "halfClose");
    }

    @Test
    @DisplayName("GR-1 requests add up to without bound")
    void addsUp() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      stream(fake).subscribe(probe);
      probe.request(Long.MAX_VALUE - 1);
      probe.request(Long.MAX_VALUE - 1);
      for (int i = 0; i < 1000; i++) {
        fake.only().deliver(REQUEST);
      }
      assertThat(probe.got).hasSize(1000);
      fake.only().close(Status.OK);
      assertThat(probe.completed).isTrue();
    }

    @Test
    @DisplayName(
        "GR-1 the end of the stream waits for messages held, and for no request beyond them")
    void endAfterHeld() {
      FakeCalls fake = new FakeCalls();
      Probe<byte[]> probe = new Probe<>();
      stream(fake).subscribe(probe);
      probe.request(1);
      fake.only().deliver(REQUEST);
      fake.only().deliver(REQUEST);
      fake.only().close(Status.OK);
      assertThat(probe.completed).isFalse();
      probe.request(1);
      assertThat(probe.got).hasSize(2);
      assertThat(probe.completed).isTrue();
      assertThat(probe.broken).isEmpty();
    }
  }
}
