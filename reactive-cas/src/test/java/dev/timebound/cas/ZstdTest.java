package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.CasScript.CommittedSize;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;

@DisplayName("CAS-32 byte streams that travel compressed")
class ZstdTest {
  private final ScriptedCas server = ScriptedCas.builder().zstd().start();
  private CasRing ring = ringOf(settings -> settings);

  private CasRing ringOf(UnaryOperator<CasRingBuilder> settings) {
    CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", server.hostAndPort())));
    return settings.apply(CasRing.builder(config)).build();
  }

  private void ring(UnaryOperator<CasRingBuilder> settings) {
    ring.close();
    ring = ringOf(settings);
    ring.capabilities("s0").block(LONG);
  }

  @AfterEach
  void close() {
    server.awaitOpenCalls(0);
    until("no claim is open", () -> ring.health().openClaims() == 0);
    ring.close();
    server.close();
  }

  /** Half of it compresses well. */
  private static byte[] content(int size) {
    byte[] content = new byte[size];
    byte[] noise = new byte[size / 2];
    new Random(size).nextBytes(noise);
    System.arraycopy(noise, 0, content, 0, noise.length);
    return content;
  }

  @ParameterizedTest
  @ValueSource(ints = {4096, 65_536, 65_537, 1_000_000, 8_000_000})
  @DisplayName("CAS-32 there and back, in fewer bytes than the blob has")
  void thereAndBack(int size) {
    byte[] content = content(size);
    Digest digest = Digest.of(content);
    ring.write(content).block(LONG);
    assertThat(server.get(digest)).isEqualTo(content);
    CasCall write = server.writes().awaitCall(1);
    assertThat(write.resourceName()).contains("/compressed-blobs/zstd/" + digest);
    assertThat(write.dataBytes()).isLessThan(size * 3L / 4);
    assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);
    CasCall read = server.reads().awaitCall(1);
    assertThat(read.resourceName()).isEqualTo("compressed-blobs/zstd/" + digest);
    assertThat(read.dataBytesSent()).isLessThan(size * 3L / 4);
    assertThat(read.limit()).isZero();
  }

  @Test
  @DisplayName("CAS-32 not small blobs, not where it is off, not before it is known of a read")
  void notCompressed() {
    Digest first = server.put(content(100_000));
    ring.readAll(first).block(LONG);
    assertThat(server.reads().awaitCall(1).resourceName()).isEqualTo("blobs/" + first);
    server.capabilities().awaitCall(1);
    ring.write(content(1000)).block(LONG);
    assertThat(server.writes().awaitCall(1).resourceName()).contains("/blobs/");
    ring(settings -> settings.compression(false));
    ring.write(content(50_000)).block(LONG);
    assertThat(server.writes().awaitCall(2).resourceName()).doesNotContain("zstd");
    ring.readAll(first).block(LONG);
    assertThat(server.reads().awaitCall(2).resourceName()).isEqualTo("blobs/" + first);
  }

  @Test
  @DisplayName("CAS-32 the second read of a shard that offers it is compressed")
  void learned() {
    Digest digest = server.put(content(100_000));
    ring.readAll(digest).block(LONG);
    server.capabilities().awaitCall(1).awaitEnd();
    until(
        "it is known",
        () -> {
          assertThat(ring.readAll(digest).block(LONG)).hasSize(100_000);
          return server.reads().calls().stream().anyMatch(c -> c.resourceName().contains("zstd"));
        });
    assertThat(server.capabilities().calls()).hasSize(1);
  }

  @ParameterizedTest
  @EnumSource(CommittedSize.class)
  @DisplayName("CAS-26 committed_size: what travelled, the blob's size or -1, nothing else")
  void committedSize(CommittedSize size) {
    server.writes().always(CasScript.correct().committed(size));
    byte[] content = content(300_000);
    if (size == CommittedSize.WRONG) {
      assertThat(failure(ring.write(content))).hasMessageContaining("committed_size");
    } else {
      assertThat(ring.write(content).block(LONG)).isNotNull();
    }
  }

  @Test
  @DisplayName("CAS-26 one that is there ends early with -1")
  void there() {
    byte[] content = content(8_000_000);
    Digest digest = server.put(content);
    assertThat(ring.write(content).block(LONG)).isEqualTo(new WriteResult(digest, true));
  }

  @Test
  @DisplayName("CAS-30 other bytes are DATA_LOSS before the upload is finished")
  void wrongContent() {
    byte[] content = content(300_000);
    Digest digest = Digest.of(content);
    content[299_999] ^= 1;
    assertThat(failure(ring.write(digest, content))).isInstanceOf(DataLossException.class);
    server.writes().awaitCall(1).awaitEnd();
    assertThat(server.digests()).isEmpty();
  }

  @Test
  @DisplayName("CAS-26 an upload that breaks begins anew, as another one")
  void resumedWrite() {
    byte[] content = content(1_000_000);
    server.writes().next(CasScript.correct().stopAfter(3, CasEnd.reset(2)));
    ring.write(content).block(LONG);
    assertThat(server.get(Digest.of(content))).isEqualTo(content);
    List<CasCall> writes = server.writes().calls();
    assertThat(writes).hasSize(2);
    assertThat(writes.get(1).offset()).isZero();
    assertThat(writes.get(1).resourceName()).isNotEqualTo(writes.get(0).resourceName());
  }

  @Test
  @DisplayName("CAS-30a a read that breaks goes on from the blob's byte, not the stream's")
  void resumedRead() {
    ring(settings -> settings.resumeMidStream(true));
    byte[] content = content(1_000_000);
    Digest digest = server.put(content);
    server.reads().next(CasScript.correct().chunkSize(10_000).stopAfter(20, CasEnd.reset(2)));
    assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);
    CasCall second = server.reads().awaitCall(2);
    assertThat(second.offset()).isPositive();
    assertThat(second.limit()).isZero();
  }

  @Test
  @DisplayName("CAS-30 other bytes, a frame cut short, and what is no zstd: DATA_LOSS")
  void wrongReads() {
    ring.capabilities("s0").block(LONG);
    Digest digest = server.put(content(300_000));
    List<CasScript> wrong = new ArrayList<>();
    wrong.add(CasScript.correct().wrongByteAt(299_999));
    wrong.add(CasScript.correct().tooShort(1));
    wrong.add(CasScript.correct().tooLong(1));
    wrong.add(CasScript.correct().chunkSize(1000).stopAfter(50, CasEnd.status(Status.OK)));
    for (CasScript script : wrong) {
      server.reads().next(script);
      assertThat(failure(ring.readAll(digest))).isInstanceOf(DataLossException.class);
    }
    Flux<ReadResponse> noZstd =
        Zstd.decompress(
            Flux.just(
                ReadResponse.newBuilder().setData(ByteString.copyFromUtf8("no zstd")).build()),
            digest);
    assertThat(failure(noZstd))
        .isInstanceOf(DataLossException.class)
        .hasMessageContaining(digest.toString());
  }

  @Test
  @DisplayName("CAS-30a a stream that becomes far more than the blob is ended, and never held")
  void bomb() {
    ring.capabilities("s0").block(LONG);
    byte[] zeros = new byte[200 << 20];
    Digest small = Digest.of(new byte[5000]);
    server.put(small, zeros);
    AtomicLong got = new AtomicLong();
    assertThat(failure(ring.read(small).doOnNext(piece -> got.addAndGet(piece.remaining()))))
        .isInstanceOf(DataLossException.class)
        .hasMessageContaining("more than 5000 bytes");
    assertThat(got.get()).isLessThanOrEqualTo(5000);
    // the pieces of one compressed message are made one by one
    ReadResponse whole =
        ReadResponse.newBuilder()
            .setData(ByteString.copyFrom(com.github.luben.zstd.Zstd.compress(zeros)))
            .build();
    List<Integer> sizes =
        Zstd.decompress(Flux.just(whole), small)
            .map(piece -> piece.getData().size())
            .take(3)
            .collectList()
            .block(LONG);
    assertThat(sizes).hasSize(3).allMatch(size -> size <= 65_536);
  }

  @Test
  @DisplayName("CAS-32 small buffers, and a reader that asks for one piece at a time")
  void oneByOne() {
    byte[] content = content(700_000);
    Digest digest = Digest.of(content);
    Flux<ByteBuffer> small =
        Flux.range(0, 700).map(i -> ByteBuffer.wrap(content, i * 1000, 1000).slice());
    ring.write(digest, small).block(LONG);
    List<ByteBuffer> pieces = ring.read(digest).limitRate(1).collectList().block(LONG);
    assertThat(pieces).isNotNull();
    assertThat(TestRing.joined(pieces)).isEqualTo(content);
  }
}
