package dev.timebound.cas.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.timebound.cas.Digest;
import dev.timebound.cas.DigestFunction;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.QueryWriteStatusRequest;
import dev.timebound.cas.wire.ByteStreams.QueryWriteStatusResponse;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import dev.timebound.cas.wire.ByteStreams.WriteResponse;
import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.CacheCapabilities;
import dev.timebound.cas.wire.RemoteExecution.Compressor;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.GetCapabilitiesRequest;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@DisplayName("A scripted store, seen by plain generated stubs")
class ScriptedCasTest {
  private final List<ManagedChannel> channels = new ArrayList<>();
  private ScriptedCas server = ScriptedCas.start();
  private Channel channel = channel(server, InsecureChannelCredentials.create());

  @AfterEach
  void nothingIsLeft() {
    channels.forEach(ManagedChannel::shutdownNow);
    server.awaitOpenConnections(0);
    server.awaitOpenCalls(0);
    server.close();
    assertThat(server.isRunning()).isFalse();
  }

  private Channel channel(ScriptedCas to, ChannelCredentials credentials) {
    ManagedChannel made =
        NettyChannelBuilder.forAddress("127.0.0.1", to.port(), credentials)
            .overrideAuthority("localhost")
            .disableRetry()
            .build();
    channels.add(made);
    return made;
  }

  private void another(ScriptedCas.Builder settings) {
    server.close();
    server = settings.start();
    channel = channel(server, InsecureChannelCredentials.create());
  }

  private ByteStreamGrpc.ByteStreamBlockingStub bytes() {
    return ByteStreamGrpc.newBlockingStub(channel).withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  private ContentAddressableStorageGrpc.ContentAddressableStorageBlockingStub store() {
    return ContentAddressableStorageGrpc.newBlockingStub(channel)
        .withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  private CacheCapabilities capabilities() {
    return CapabilitiesGrpc.newBlockingStub(channel)
        .withDeadlineAfter(20, TimeUnit.SECONDS)
        .getCapabilities(GetCapabilitiesRequest.getDefaultInstance())
        .getCacheCapabilities();
  }

  private static ReadRequest reading(Digest digest, long offset, long limit) {
    return ReadRequest.newBuilder()
        .setResourceName("blobs/" + digest)
        .setReadOffset(offset)
        .setReadLimit(limit)
        .build();
  }

  private String read(Digest digest, long offset, long limit) {
    return text(bytes().read(reading(digest, offset, limit)));
  }

  private static String text(Iterator<ReadResponse> messages) {
    StringBuilder all = new StringBuilder();
    messages.forEachRemaining(message -> all.append(message.getData().toStringUtf8()));
    return all.toString();
  }

  private static Status.Code codeOf(Throwable thrown) {
    return ((StatusRuntimeException) thrown).getStatus().getCode();
  }

  private static void fails(Status.Code code, Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOf(StatusRuntimeException.class)
        .satisfies(thrown -> assertThat(codeOf(thrown)).isEqualTo(code));
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static RemoteExecution.Digest wire(Digest digest) {
    return RemoteExecution.Digest.newBuilder()
        .setHash(digest.hash())
        .setSizeBytes(digest.sizeBytes())
        .build();
  }

  /** An upload by hand, request by request. */
  private final class Upload implements StreamObserver<WriteResponse> {
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

  private static String uploadOf(Digest digest) {
    return "uploads/" + UUID.randomUUID() + "/blobs/" + digest;
  }

  @Nested
  @DisplayName("is a correct store")
  class Correct {
    @Test
    void readsTheWholeAPartAndTheRest() {
      Digest digest = server.put("0123456789");

      assertThat(read(digest, 0, 0)).isEqualTo("0123456789");
      assertThat(read(digest, 4, 3)).isEqualTo("456");
      assertThat(read(digest, 10, 0)).isEmpty();
      fails(Status.Code.OUT_OF_RANGE, () -> read(digest, 11, 0));
      fails(Status.Code.NOT_FOUND, () -> read(Digest.of(utf8("none")), 0, 0));
      assertThat(read(Digest.empty(DigestFunction.SHA256), 0, 0)).isEmpty();
    }

    @Test
    void writesInPartsAndChecksTheDigest() {
      byte[] content = utf8("0123456789");
      Digest digest = Digest.of(content);
      Upload upload = new Upload(uploadOf(digest));

      upload.send(0, utf8("01234"), false).send(5, utf8("56789"), true);

      assertThat(upload.committed()).isEqualTo(10);
      assertThat(server.get(digest)).isEqualTo(content);
      Upload wrong = new Upload(uploadOf(Digest.of(utf8("abc"))));
      assertThat(wrong.send(0, utf8("abd"), true).failure())
          .isEqualTo(Status.Code.INVALID_ARGUMENT);
      assertThat(server.digests()).containsExactly(digest);
    }

    @Test
    void answersAWriteOfWhatItHasAtItsFirstMessage() {
      Digest digest = server.put("0123456789");
      assertThat(new Upload(uploadOf(digest)).send(0, utf8("01"), false).committed()).isEqualTo(10);
    }

    @Test
    void goesOnWithAnUploadThatBroke() {
      Digest digest = Digest.of(utf8("0123456789"));
      String name = uploadOf(digest);
      server.writes().next(CasScript.correct().stopAfter(1, CasEnd.resetConnection()));
      assertThat(new Upload(name).send(0, utf8("0123"), false).failure())
          .isEqualTo(Status.Code.UNAVAILABLE);

      QueryWriteStatusResponse status =
          bytes()
              .queryWriteStatus(QueryWriteStatusRequest.newBuilder().setResourceName(name).build());
      assertThat(status.getCommittedSize()).isEqualTo(4);
      assertThat(status.getComplete()).isFalse();
      assertThat(new Upload(name).send(4, utf8("456789"), true).committed()).isEqualTo(10);
      assertThat(server.has(digest)).isTrue();
    }

    @Test
    void answersBatchesBlobByBlob() {
      another(ScriptedCas.builder().batchLimit(10));
      Digest there = server.put("there");
      Digest missing = Digest.of(utf8("none"));

      List<BatchReadBlobsResponse.Response> read =
          store()
              .batchReadBlobs(
                  BatchReadBlobsRequest.newBuilder()
                      .addDigests(wire(there))
                      .addDigests(wire(missing))
                      .build())
              .getResponsesList();
      assertThat(read).extracting(r -> r.getStatus().getCode()).containsExactly(0, 5);
      assertThat(read.get(0).getData().toStringUtf8()).isEqualTo("there");
      assertThat(
              store()
                  .findMissingBlobs(
                      FindMissingBlobsRequest.newBuilder()
                          .addBlobDigests(wire(there))
                          .addBlobDigests(wire(missing))
                          .build())
                  .getMissingBlobDigestsList())
          .containsExactly(wire(missing));
      fails(
          Status.Code.INVALID_ARGUMENT,
          () ->
              store()
                  .batchUpdateBlobs(
                      BatchUpdateBlobsRequest.newBuilder()
                          .addRequests(
                              BatchUpdateBlobsRequest.Request.newBuilder()
                                  .setDigest(wire(Digest.of(new byte[11])))
                                  .setData(ByteString.copyFrom(new byte[11])))
                          .build()));
      assertThat(capabilities().getMaxBatchTotalSizeBytes()).isEqualTo(10);
    }

    @Test
    void speaksZstdWhereAsked() throws IOException {
      another(ScriptedCas.builder().zstd().digestFunctions(DigestFunction.BLAKE3));
      byte[] content = new byte[100_000];
      Arrays.fill(content, (byte) 'a');
      Digest digest = Digest.of(content, DigestFunction.BLAKE3);
      byte[] compressed = Zstd.compress(content);
      String resource = "compressed-blobs/zstd/blake3/" + digest;

      Upload upload = new Upload("uploads/" + UUID.randomUUID() + "/" + resource);
      assertThat(upload.send(0, compressed, true).committed()).isEqualTo(compressed.length);

      ByteArrayOutputStream back = new ByteArrayOutputStream();
      bytes()
          .read(ReadRequest.newBuilder().setResourceName(resource).setReadOffset(50_000).build())
          .forEachRemaining(message -> back.writeBytes(message.getData().toByteArray()));
      assertThat(Zstd.decompress(back.toByteArray(), 50_000)).hasSize(50_000);
      assertThat(capabilities().getSupportedCompressorsList())
          .containsExactly(Compressor.Value.ZSTD);
      fails(Status.Code.INVALID_ARGUMENT, () -> read(Digest.of(content), 0, 0));
    }

    @Test
    void asksForItsTokenAndItsName() {
      another(ScriptedCas.builder().token("secret").instanceName("main"));
      Digest digest = server.put("content");
      ReadRequest named = ReadRequest.newBuilder().setResourceName("main/blobs/" + digest).build();
      fails(Status.Code.UNAUTHENTICATED, () -> text(bytes().read(named)));

      Metadata headers = new Metadata();
      headers.put(
          Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer secret");
      ByteStreamGrpc.ByteStreamBlockingStub stub =
          bytes().withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers));
      assertThat(text(stub.read(named))).isEqualTo("content");
      fails(Status.Code.INVALID_ARGUMENT, () -> text(stub.read(reading(digest, 0, 0))));
      server.requireToken("next");
      fails(Status.Code.UNAUTHENTICATED, () -> text(stub.read(named)));
    }

    @Test
    void speaksTlsAndMutualTls(@TempDir Path directory) throws IOException {
      TestCertificates certificates = TestCertificates.in(directory);
      another(ScriptedCas.builder().mutualTls(certificates));
      Digest digest = server.put("content");
      TlsChannelCredentials.Builder trusting =
          TlsChannelCredentials.newBuilder()
              .trustManager(certificates.serverCertificate().toFile());
      channel = channel(server, trusting.build());
      fails(Status.Code.UNAVAILABLE, () -> read(digest, 0, 0));

      channel =
          channel(
              server,
              trusting
                  .keyManager(
                      certificates.clientCertificate().toFile(), certificates.clientKey().toFile())
                  .build());
      assertThat(read(digest, 0, 0)).isEqualTo("content");
      assertThat(server.reads().awaitCall(1).awaitEnd()).isEqualTo(CasCall.End.COMPLETE);
    }
  }

  @Nested
  @DisplayName("fails as its script says")
  class Scripted {
    private final Digest digest = server.put("0123456789");

    @Test
    void withAStatusAndTrailersInMidStream() {
      Metadata.Key<String> key = Metadata.Key.of("why", Metadata.ASCII_STRING_MARSHALLER);
      Metadata trailers = new Metadata();
      trailers.put(key, "because");
      server
          .reads()
          .next(
              CasScript.correct()
                  .chunkSize(3)
                  .stopAfter(2, CasEnd.status(Status.ABORTED, trailers)));
      Iterator<ReadResponse> messages = bytes().read(reading(digest, 0, 0));

      assertThat(messages.next().getData().toStringUtf8()).isEqualTo("012");
      assertThat(messages.next().getData().toStringUtf8()).isEqualTo("345");
      assertThatThrownBy(messages::hasNext)
          .isInstanceOfSatisfying(
              StatusRuntimeException.class,
              thrown -> {
                assertThat(codeOf(thrown)).isEqualTo(Status.Code.ABORTED);
                assertThat(Status.trailersFromThrowable(thrown).get(key)).isEqualTo("because");
              });
      assertThat(read(digest, 0, 0)).as("one call's script").isEqualTo("0123456789");
    }

    @Test
    void withSilenceUntilTheClientGivesUp() {
      server.reads().always(CasScript.silence());
      fails(
          Status.Code.DEADLINE_EXCEEDED,
          () ->
              text(
                  bytes()
                      .withDeadlineAfter(300, TimeUnit.MILLISECONDS)
                      .read(reading(digest, 0, 0))));

      CasCall call = server.reads().awaitCall(1);
      assertThat(call.awaitEnd()).isEqualTo(CasCall.End.RESET_BY_CLIENT);
      assertThat(call.timeout()).isBetween(Duration.ofMillis(1), Duration.ofMillis(300));
    }

    @Test
    void withAResetAfterTwoMessages() {
      server.reads().next(CasScript.correct().chunkSize(3).stopAfter(2, CasEnd.reset(2)));
      Iterator<ReadResponse> messages = bytes().read(reading(digest, 0, 0));
      messages.next();
      messages.next();
      fails(Status.Code.INTERNAL, () -> text(messages));
      assertThat(server.calls().get(0).awaitEnd()).isEqualTo(CasCall.End.RESET_BY_SERVER);
    }

    @Test
    void withAGoAwayThatKeepsTheCallOrDisownsIt() {
      server.reads().next(CasScript.correct().chunkSize(3).goAwayAfter(1));
      assertThat(read(digest, 0, 0)).isEqualTo("0123456789");
      assertThat(read(digest, 0, 0)).isEqualTo("0123456789");
      assertThat(server.calls().get(1).connection().id()).isEqualTo(2);

      server.reads().next(CasScript.correct().chunkSize(3).stopAfter(1, CasEnd.goAway(0)));
      fails(Status.Code.UNAVAILABLE, () -> read(digest, 0, 0));
      assertThat(server.calls().get(2).awaitEnd()).isEqualTo(CasCall.End.REFUSED);
    }

    @Test
    void withItsConnection() {
      server.reads().next(CasScript.correct().stopAfter(0, CasEnd.closeConnection()));
      fails(Status.Code.UNAVAILABLE, () -> read(digest, 0, 0));
      assertThat(server.calls().get(0).awaitEnd()).isEqualTo(CasCall.End.CONNECTION_CLOSED);
      assertThat(read(digest, 0, 0)).isEqualTo("0123456789");
    }

    @Test
    void withWrongLongShortAndIgnorantContent() {
      server
          .reads()
          .next(
              CasScript.correct().wrongByteAt(1),
              CasScript.correct().tooLong(5),
              CasScript.correct().tooShort(5),
              CasScript.correct().ignoringOffset().ignoringLimit(),
              CasScript.correct().emptyPastEnd(),
              CasScript.correct().chunkSize(4).keepAlives(2));

      assertThat(read(digest, 0, 0)).hasSize(10).isNotEqualTo("0123456789").startsWith("0");
      assertThat(read(digest, 0, 0)).hasSize(15).startsWith("0123456789");
      assertThat(read(digest, 0, 0)).isEqualTo("01234");
      assertThat(read(digest, 4, 2)).isEqualTo("0123456789");
      assertThat(read(digest, 11, 0)).isEmpty();
      List<Integer> sizes = new ArrayList<>();
      bytes()
          .read(reading(digest, 0, 0))
          .forEachRemaining(message -> sizes.add(message.getData().size()));
      assertThat(sizes).containsExactly(4, 0, 0, 4, 0, 0, 2, 0, 0);
    }

    @Test
    void byDigestAndByNumber() {
      Digest other = server.put("other");
      server
          .reads()
          .forDigest(other, CasScript.status(Status.DATA_LOSS))
          .answer(call -> call.number() == 3 ? CasScript.status(Status.UNKNOWN) : null);

      assertThat(read(digest, 0, 0)).hasSize(10);
      fails(Status.Code.DATA_LOSS, () -> read(other, 0, 0));
      fails(Status.Code.UNKNOWN, () -> read(digest, 0, 0));
      server.heal();
      assertThat(read(other, 0, 0)).isEqualTo("other");
    }

    @Test
    void onceAGateIsOpen() {
      CompletableFuture<@Nullable Void> gate = new CompletableFuture<>();
      server.reads().next(CasScript.correct().after(gate));
      CompletableFuture<String> reading = CompletableFuture.supplyAsync(() -> read(digest, 0, 0));
      assertThat(server.reads().awaitCall(1).messagesSent()).isZero();
      assertThat(reading).isNotDone();
      gate.complete(null);
      assertThat(reading).succeedsWithin(Duration.ofSeconds(20)).isEqualTo("0123456789");
    }

    @Test
    void aWriteEarlyInMidStreamAndInWhatItSaysOfItsSize() {
      byte[] content = utf8("abcdefghij");
      Digest written = Digest.of(content);
      server
          .writes()
          .next(
              CasScript.correct().early(),
              CasScript.correct().stopAfter(1, CasEnd.status(Status.RESOURCE_EXHAUSTED)),
              CasScript.correct().committed(CasScript.CommittedSize.WRONG),
              CasScript.correct().committed(CasScript.CommittedSize.MINUS_ONE));

      assertThat(new Upload(uploadOf(written)).send(0, utf8("ab"), false).committed())
          .isEqualTo(10);
      assertThat(server.has(written)).isFalse();
      assertThat(new Upload(uploadOf(written)).send(0, utf8("ab"), false).failure())
          .isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
      assertThat(new Upload(uploadOf(written)).send(0, content, true).committed()).isEqualTo(9);
      server.remove(written);
      assertThat(new Upload(uploadOf(written)).send(0, content, true).committed()).isEqualTo(-1);
      assertThat(server.writes().calls()).extracting(CasCall::dataBytes).contains(2L, 10L);
    }

    @Test
    void blobByBlobAndCapabilityByCapability() {
      Digest other = server.put("other");
      server.batchReads().next(CasScript.correct().blobStatus(other, Status.RESOURCE_EXHAUSTED));
      assertThat(
              store()
                  .batchReadBlobs(
                      BatchReadBlobsRequest.newBuilder()
                          .addDigests(wire(digest))
                          .addDigests(wire(other))
                          .build())
                  .getResponsesList())
          .extracting(r -> r.getStatus().getCode())
          .containsExactly(0, Status.Code.RESOURCE_EXHAUSTED.value());
      server.capabilities().next(CasScript.status(Status.UNIMPLEMENTED));
      fails(Status.Code.UNIMPLEMENTED, ScriptedCasTest.this::capabilities);
      assertThat(capabilities().getDigestFunctionsList())
          .containsExactly(RemoteExecution.DigestFunction.Value.SHA256);
    }
  }

  @Nested
  @DisplayName("dies and comes back on its port")
  class Life {
    @Test
    void withItsBlobsAndRecords() {
      Digest digest = server.put("content");
      int port = server.port();
      assertThat(read(digest, 0, 0)).isEqualTo("content");
      server.kill();
      fails(Status.Code.UNAVAILABLE, () -> read(digest, 0, 0));
      server.restart();
      assertThat(server.port()).isEqualTo(port);
      channel = channel(server, InsecureChannelCredentials.create());
      assertThat(read(digest, 0, 0)).isEqualTo("content");
      assertThat(server.reads().calls()).hasSize(2);
    }

    @Test
    void andLeavesNoThread() {
      server.put("content");
      server.close();
      // one that has ended is seen to live for a moment more
      Wait.until(
          "no thread is left",
          () ->
              Thread.getAllStackTraces().keySet().stream()
                  .noneMatch(thread -> thread.getName().startsWith("scripted-cas")),
          () -> Thread.getAllStackTraces().keySet().toString());
    }
  }
}
