package dev.timebound.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.Digest;
import dev.timebound.cas.DigestHasher;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class CasFastServerTest {
  private static Server server;
  private static ManagedChannel channel;

  @BeforeAll
  static void start() throws Exception {
    server = CasFastServer.start(new CasReplies());
    channel =
        NettyChannelBuilder.forAddress("localhost", server.getPort())
            .usePlaintext()
            .maxInboundMessageSize(2 << 20)
            .build();
  }

  @AfterAll
  static void stop() throws Exception {
    channel.shutdownNow();
    server.shutdownNow();
    assertThat(channel.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    assertThat(server.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  @DisplayName("the large blob is the same by messages of 1 MiB and of 64 KiB")
  void large() {
    Digest digest = Digest.of(CasReplies.large());
    for (String instance : new String[] {CasReplies.MIB, CasReplies.KIB_64}) {
      DigestHasher hasher = DigestHasher.of(digest.function());
      Set<Integer> sizes = new HashSet<>();
      Iterator<ReadResponse> messages =
          ByteStreamGrpc.newBlockingStub(channel)
              .read(
                  ReadRequest.newBuilder().setResourceName(instance + "/blobs/" + digest).build());
      messages.forEachRemaining(
          message -> {
            hasher.update(message.getData().asReadOnlyByteBuffer());
            sizes.add(message.getData().size());
          });
      assertThat(hasher.digest()).isEqualTo(digest);
      assertThat(sizes).containsExactly(instance.equals(CasReplies.MIB) ? 1 << 20 : 64 << 10);
    }
  }

  @Test
  @DisplayName("a small blob comes as a stream and in a batch; an unknown one is refused")
  void small() {
    byte[] content = CasReplies.small(17);
    Digest digest = Digest.of(content);
    Iterator<ReadResponse> messages =
        ByteStreamGrpc.newBlockingStub(channel)
            .read(ReadRequest.newBuilder().setResourceName("blobs/" + digest).build());
    assertThat(messages.next().getData().toByteArray()).isEqualTo(content);
    assertThat(messages.hasNext()).isFalse();
    assertThat(batch(digest)).isEqualTo(content);
    assertThatThrownBy(() -> batch(Digest.of(new byte[3])))
        .isInstanceOf(StatusRuntimeException.class)
        .hasMessageContaining("INVALID_ARGUMENT");
  }

  private static byte[] batch(Digest digest) {
    return ContentAddressableStorageGrpc.newBlockingStub(channel)
        .batchReadBlobs(
            BatchReadBlobsRequest.newBuilder()
                .addDigests(
                    RemoteExecution.Digest.newBuilder()
                        .setHash(digest.hash())
                        .setSizeBytes(digest.sizeBytes()))
                .build())
        .getResponses(0)
        .getData()
        .toByteArray();
  }
}
