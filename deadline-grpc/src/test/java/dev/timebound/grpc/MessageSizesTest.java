package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("BT-42 sizes of messages")
class MessageSizesTest {
  private static ClientStreamTracer tracer(MessageSizes sizes) {
    return sizes.newClientStreamTracer(
        ClientStreamTracer.StreamInfo.newBuilder().build(), new Metadata());
  }

  @Test
  @DisplayName("BT-42 a larger message counts at once, smaller ones let it fade")
  void fades() {
    MessageSizes sizes = MessageSizes.ofResponses();
    ClientStreamTracer tracer = tracer(sizes);
    assertThat(sizes.lately()).isZero();
    tracer.inboundMessageRead(0, 1000, -1);
    assertThat(sizes.lately()).isEqualTo(1000);
    tracer.inboundMessageRead(1, 300_000, -1);
    assertThat(sizes.lately()).isEqualTo(300_000);
    tracer.inboundMessageRead(2, 1000, -1);
    assertThat(sizes.lately()).isBetween(290_000L, 291_000L);
    for (int i = 0; i < 400; i++) {
      tracer.inboundMessageRead(3 + i, 1000, -1);
    }
    assertThat(sizes.lately()).isBetween(1000L, 1100L);
  }

  @Test
  @DisplayName("BT-42 an empty message is known to be small, an untold one is not known")
  void emptyAndUntold() {
    MessageSizes sizes = MessageSizes.ofResponses();
    tracer(sizes).inboundMessageRead(0, -1, -1);
    assertThat(sizes.lately()).isZero();
    tracer(sizes).inboundMessageRead(1, 0, -1);
    assertThat(sizes.lately()).isEqualTo(1);
  }

  @Test
  @DisplayName("BT-42 a real transport tells the size of a plain message")
  void plain() throws Exception {
    assertThat(sizeSeen(Script.messages(1, 200_000))).isEqualTo(200_000);
  }

  @Test
  @DisplayName("BT-42 a compressed message counts as what it becomes")
  void compressed() throws Exception {
    Script script = reply -> reply.compressed().message(new byte[200_000]).ok();
    assertThat(sizeSeen(script)).isEqualTo(200_000);
  }

  private static long sizeSeen(Script script) throws InterruptedException {
    try (var server = new BridgeServer(Transport.NETTY, script)) {
      MessageSizes sizes = MessageSizes.ofResponses();
      ClientCall<byte[], byte[]> call =
          server.channel.newCall(STREAM, CallOptions.DEFAULT.withStreamTracerFactory(sizes));
      CountDownLatch closed = new CountDownLatch(1);
      call.start(
          new ClientCall.Listener<>() {
            @Override
            public void onMessage(byte[] message) {
              sizes.parsed();
            }

            @Override
            public void onClose(Status status, Metadata trailers) {
              closed.countDown();
            }
          },
          new Metadata());
      call.sendMessage(REQUEST);
      call.halfClose();
      call.request(2);
      assertThat(closed.await(20, TimeUnit.SECONDS)).isTrue();
      return sizes.lately();
    }
  }
}
