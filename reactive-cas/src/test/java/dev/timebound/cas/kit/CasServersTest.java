package dev.timebound.cas.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.GetCapabilitiesRequest;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

@DisplayName("Real stores")
class CasServersTest {
  @Nested
  @DisplayName("as processes")
  class Processes {
    @RegisterExtension static final CasServersExtension TWO = CasServersExtension.of(2);

    // another one each time: the stores are those of the whole class
    private final String text = "content " + UUID.randomUUID();
    private final byte[] content = text.getBytes(StandardCharsets.UTF_8);
    private final Digest digest = Digest.of(content);
    private final List<ManagedChannel> channels = new ArrayList<>();

    @AfterEach
    void close() {
      channels.forEach(ManagedChannel::shutdownNow);
    }

    private ManagedChannel channel(CasServer server) {
      ManagedChannel channel =
          NettyChannelBuilder.forAddress("127.0.0.1", server.port()).usePlaintext().build();
      channels.add(channel);
      return channel;
    }

    private void write(CasServer server) {
      RemoteExecution.Digest wire =
          RemoteExecution.Digest.newBuilder()
              .setHash(digest.hash())
              .setSizeBytes(digest.sizeBytes())
              .build();
      int code =
          ContentAddressableStorageGrpc.newBlockingStub(channel(server))
              .withDeadlineAfter(20, TimeUnit.SECONDS)
              .batchUpdateBlobs(
                  BatchUpdateBlobsRequest.newBuilder()
                      .addRequests(
                          BatchUpdateBlobsRequest.Request.newBuilder()
                              .setDigest(wire)
                              .setData(ByteString.copyFrom(content)))
                      .build())
              .getResponses(0)
              .getStatus()
              .getCode();
      assertThat(code).isZero();
    }

    private String read(CasServer server, long millis) {
      StringBuilder all = new StringBuilder();
      ByteStreamGrpc.newBlockingStub(channel(server))
          .withDeadlineAfter(millis, TimeUnit.MILLISECONDS)
          .read(ReadRequest.newBuilder().setResourceName("blobs/" + digest).build())
          .forEachRemaining(message -> all.append(message.getData().toStringUtf8()));
      return all.toString();
    }

    private void fails(Status.Code code, Runnable call) {
      assertThatThrownBy(call::run)
          .isInstanceOfSatisfying(
              StatusRuntimeException.class,
              thrown -> assertThat(thrown.getStatus().getCode()).isEqualTo(code));
    }

    @Test
    @DisplayName("each have their own store, and keep it and their port over a kill")
    void kill(CasServers servers) {
      CasServer first = servers.get(0);
      int port = first.port();
      write(first);
      assertThat(read(first, 20_000)).isEqualTo(text);
      assertThat(first.blobs()).isPositive();
      fails(Status.Code.NOT_FOUND, () -> read(servers.get(1), 20_000));

      first.kill();
      assertThat(first.isRunning()).isFalse();
      fails(Status.Code.UNAVAILABLE, () -> read(first, 20_000));
      first.restart();
      assertThat(first.port()).isEqualTo(port);
      assertThat(read(first, 20_000)).isEqualTo(text);
    }

    @Test
    @DisplayName("do not answer while frozen, and do when thawed")
    void freeze(CasServers servers) {
      CasServer second = servers.get(1);
      write(second);
      second.freeze();
      assertThat(second.isFrozen()).isTrue();
      fails(Status.Code.DEADLINE_EXCEEDED, () -> read(second, 500));
      second.thaw();
      assertThat(read(second, 20_000)).isEqualTo(text);
    }

    @Test
    @DisplayName("say batches of 1 MiB of themselves")
    void capabilities(CasServers servers) {
      assertThat(
              CapabilitiesGrpc.newBlockingStub(channel(servers.get(0)))
                  .withDeadlineAfter(20, TimeUnit.SECONDS)
                  .getCapabilities(GetCapabilitiesRequest.getDefaultInstance())
                  .getCacheCapabilities()
                  .getMaxBatchTotalSizeBytes())
          .isEqualTo(1 << 20);
    }

    @Test
    @DisplayName("leave no process and no directory, killed or frozen")
    void nothingIsLeft() throws IOException {
      long before = directories();
      CasServers own = CasServers.start(2);
      List<Long> pids = ProcessHandle.current().descendants().map(ProcessHandle::pid).toList();
      own.get(0).freeze();
      own.get(1).kill();
      own.close();
      own.close();
      assertThat(directories()).isEqualTo(before);
      assertThat(own.all()).noneMatch(CasServer::isRunning);
      assertThat(pids).isNotEmpty();
    }

    private long directories() throws IOException {
      String mine = "timebound-cas-" + ProcessHandle.current().pid() + "-";
      try (Stream<Path> all = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
        return all.filter(path -> path.getFileName().toString().startsWith(mine)).count();
      }
    }
  }

  @Nested
  @DisplayName("that are not there")
  class Absent {
    private final Optional<String> why = Optional.of("no server");

    @Test
    @DisplayName("skip a test with the reason, save where they are to be there")
    void skips() {
      assertThat(CasServersExtension.decide(Optional.empty(), Map.of()).isDisabled()).isFalse();
      assertThat(CasServersExtension.decide(why, Map.of()))
          .satisfies(
              result -> {
                assertThat(result.isDisabled()).isTrue();
                assertThat(result.getReason()).contains("no server");
              });
      assertThat(
              CasServersExtension.decide(
                      why, Map.of("CI", "true", CasServersExtension.VARIABLE, "absent"))
                  .isDisabled())
          .isTrue();
      assertThatThrownBy(() -> CasServersExtension.decide(why, Map.of("CI", "true")))
          .hasMessageContaining("no server");
      assertThatThrownBy(
              () ->
                  CasServersExtension.decide(why, Map.of(CasServersExtension.VARIABLE, "required")))
          .hasMessageContaining("no server");
    }
  }
}
