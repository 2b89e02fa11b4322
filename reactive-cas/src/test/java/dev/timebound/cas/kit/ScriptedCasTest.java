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
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.Compressor;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@DisplayName("A scripted store, seen by plain generated stubs")
class ScriptedCasTest extends Stubs {
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
    void onAPortThatNobodyElseWasGiven() throws IOException {
      server.kill();
      try (ServerSocket other = new ServerSocket()) {
        other.setReuseAddress(false);
        InetSocketAddress port = new InetSocketAddress("127.0.0.1", server.port());
        assertThatThrownBy(() -> other.bind(port)).isInstanceOf(BindException.class);
      }
      server.restart();
      channel = channel(server, InsecureChannelCredentials.create());
      assertThat(read(server.put("content"), 0, 0)).isEqualTo("content");
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
