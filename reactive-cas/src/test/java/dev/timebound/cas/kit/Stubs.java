package dev.timebound.cas.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import dev.timebound.cas.wire.ByteStreams.WriteResponse;
import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.CacheCapabilities;
import dev.timebound.cas.wire.RemoteExecution.GetCapabilitiesRequest;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.StreamObserver;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;

/** A scripted store, and plain generated stubs that call it. */
abstract class Stubs {
  private final List<ManagedChannel> channels = new ArrayList<>();
  ScriptedCas server = ScriptedCas.start();
  Channel channel = channel(server, InsecureChannelCredentials.create());

  @AfterEach
  void nothingIsLeft() {
    channels.forEach(ManagedChannel::shutdownNow);
    server.awaitOpenConnections(0);
    server.awaitOpenCalls(0);
    server.close();
    assertThat(server.isRunning()).isFalse();
  }

  Channel channel(ScriptedCas to, ChannelCredentials credentials) {
    ManagedChannel made =
        NettyChannelBuilder.forAddress("127.0.0.1", to.port(), credentials)
            .overrideAuthority("localhost")
            .disableRetry()
            .build();
    channels.add(made);
    return made;
  }

  void another(ScriptedCas.Builder settings) {
    server.close();
    server = settings.start();
    channel = channel(server, InsecureChannelCredentials.create());
  }

  ByteStreamGrpc.ByteStreamBlockingStub bytes() {
    return ByteStreamGrpc.newBlockingStub(channel).withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  ContentAddressableStorageGrpc.ContentAddressableStorageBlockingStub store() {
    return ContentAddressableStorageGrpc.newBlockingStub(channel)
        .withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  CacheCapabilities capabilities() {
    return CapabilitiesGrpc.newBlockingStub(channel)
        .withDeadlineAfter(20, TimeUnit.SECONDS)
        .getCapabilities(GetCapabilitiesRequest.getDefaultInstance())
        .getCacheCapabilities();
  }

  static ReadRequest reading(Digest digest, long offset, long limit) {
    return ReadRequest.newBuilder()
        .setResourceName("blobs/" + digest)
        .setReadOffset(offset)
        .setReadLimit(limit)
        .build();
  }

  String read(Digest digest, long offset, long limit) {
    return text(bytes().read(reading(digest, offset, limit)));
  }

  static String text(Iterator<ReadResponse> messages) {
    StringBuilder all = new StringBuilder();
    messages.forEachRemaining(message -> all.append(message.getData().toStringUtf8()));
    return all.toString();
  }

  static Status.Code codeOf(Throwable thrown) {
    return ((StatusRuntimeException) thrown).getStatus().getCode();
  }

  static void fails(Status.Code code, Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOf(StatusRuntimeException.class)
        .satisfies(thrown -> assertThat(codeOf(thrown)).isEqualTo(code));
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static RemoteExecution.Digest wire(Digest digest) {
    return RemoteExecution.Digest.newBuilder()
        .setHash(digest.hash())
        .setSizeBytes(digest.sizeBytes())
        .build();
  }

  /** An upload by hand, request by request. */
  final class Upload implements StreamObserver<WriteResponse> {
    final CompletableFuture<WriteResponse> answer = new CompletableFuture<>();
    private final StreamObserver<WriteRequest> requests;
    private String name;

    Upload(String name) {
      this.name = name;
      requests = ByteStreamGrpc.newStub(channel).write(this);
    }

    Upload send(long offset, byte[] data, boolean finish) {
      requests.onNext(
          WriteRequest.newBuilder()
              .setResourceName(name)
              .setWriteOffset(offset)
              .setData(ByteString.copyFrom(data))
              .setFinishWrite(finish)
              .build());
      name = "";
      return this;
    }

    long committed() {
      return answer.orTimeout(20, TimeUnit.SECONDS).join().getCommittedSize();
    }

    Status.Code failure() {
      return codeOf(
          answer.orTimeout(20, TimeUnit.SECONDS).handle((answered, thrown) -> thrown).join());
    }

    @Override
    public void onNext(WriteResponse response) {
      answer.complete(response);
    }

    @Override
    public void onError(Throwable thrown) {
      answer.completeExceptionally(thrown);
    }

    @Override
    public void onCompleted() {}
  }

  static String uploadOf(Digest digest) {
    return "uploads/" + UUID.randomUUID() + "/blobs/" + digest;
  }
}
