package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.code;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.test.StepVerifier;

@DisplayName("CAS-31 reading many")
class ReadManyTest {
  private static final int MIB = 1 << 20;

  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  private TestRing ring(int shards) {
    return ring(shards, settings -> settings);
  }

  /** By digest; pauses between calls pass until all are there. */
  private static Map<Digest, ReadManyResult> read(TestRing ring, List<Digest> digests) {
    CompletableFuture<List<ReadManyResult>> all =
        ring.ring.readMany(digests).collectList().toFuture();
    ring.passPauses(all);
    Map<Digest, ReadManyResult> byDigest = new HashMap<>();
    for (ReadManyResult result : all.join()) {
      assertThat(byDigest.put(result.digest(), result)).as("each once").isNull();
    }
    assertThat(byDigest.keySet())
        .containsExactlyInAnyOrderElementsOf(List.copyOf(new java.util.HashSet<>(digests)));
    return byDigest;
  }

  private static void right(@Nullable ReadManyResult result) {
    if (result == null || result.bytes() == null) {
      throw new AssertionError("not read: " + result);
    }
    byte[] bytes = new byte[result.bytes().remaining()];
    result.bytes().duplicate().get(bytes);
    assertThat(Digest.of(bytes)).isEqualTo(result.digest());
    assertThat(result.bytes().isReadOnly()).isTrue();
    assertThat(result.isOk()).isTrue();
  }

  private static @Nullable Throwable failure(Map<Digest, ReadManyResult> all, Digest digest) {
    ReadManyResult result = all.get(digest);
    return result == null ? null : result.failure();
  }

  @Test
  @DisplayName("CAS-31 small blobs in batches of their shard, large ones by themselves")
  void grouped() {
    TestRing ring = ring(3);
    ring.learnLimits();
    List<Digest> digests = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      digests.add(ring.put(ring.contentOf(i % 3, 1000 + i), i % 3));
    }
    Digest large = ring.put(ring.contentOf(1, 5 * MIB), 1);
    digests.add(large);
    digests.add(digests.get(7));
    digests.add(Digest.of(new byte[0]));
    Map<Digest, ReadManyResult> all = read(ring, digests);
    all.values().forEach(ReadManyTest::right);
    for (int i = 0; i < 3; i++) {
      assertThat(ring.server(i).batchReads().calls()).hasSize(1);
      assertThat(ring.reads(i)).isEqualTo(i == 1 ? 1 : 0);
    }
  }

  @Test
  @DisplayName("CAS-31 no batch is above what gRPC lets through")
  void messageLimit() {
    TestRing ring = ring(1);
    ring.learnLimits();
    List<Digest> digests = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      digests.add(ring.put(ring.contentOf(0, 100_000), 0));
    }
    read(ring, digests).values().forEach(ReadManyTest::right);
    assertThat(ring.server(0).batchReads().calls()).hasSize(3);
  }

  @Test
  @DisplayName("CAS-30b CAS-31 a blob's status is its alone; missing is typed")
  void statuses() {
    TestRing ring = ring(2);
    Digest there = ring.put(0, 0);
    Digest missing = ring.put(0);
    Digest denied = ring.put(0, 0);
    Digest leftOver = ring.put(1, 1);
    ring.server(0)
        .batchReads()
        .always(CasScript.correct().blobStatus(denied, Status.PERMISSION_DENIED));
    Map<Digest, ReadManyResult> all = read(ring, List.of(there, missing, denied, leftOver));
    right(all.get(there));
    right(all.get(leftOver));
    assertThat(failure(all, missing)).isInstanceOf(BlobNotFoundException.class);
    assertThat(code(failure(all, denied))).isEqualTo(Status.Code.PERMISSION_DENIED);
    assertThat(failure(all, denied)).hasMessageContaining("s0").hasMessageContaining("" + denied);
    assertThat(ring.server(0).batchReads().calls()).hasSize(1);
  }

  @Test
  @DisplayName("CAS-31 a blob whose status asks for it is asked for again, alone")
  void again() {
    TestRing ring = ring(1);
    Digest there = ring.put(0, 0);
    Digest busy = ring.put(0, 0);
    Digest always = ring.put(0, 0);
    CasScript script =
        CasScript.correct().blobStatus(always, Status.UNAVAILABLE.withDescription("disk"));
    ring.server(0)
        .batchReads()
        .next(script.blobStatus(busy, Status.RESOURCE_EXHAUSTED), script)
        .always(script);
    Map<Digest, ReadManyResult> all = read(ring, List.of(there, busy, always));
    right(all.get(there));
    right(all.get(busy));
    assertThat(code(failure(all, always))).isEqualTo(Status.Code.UNAVAILABLE);
    assertThat(ring.server(0).batchReads().calls())
        .extracting(call -> call.digests().size())
        .containsExactly(3, 2, 1, 1);
  }

  @Test
  @DisplayName("CAS-30b of two answers about one blob the one with its bytes counts")
  void contradiction() {
    TestRing ring = ring(1);
    Digest digest = ring.put("here".getBytes(java.nio.charset.StandardCharsets.UTF_8), 0);
    BatchReadBlobsResponse.Response bytes =
        BatchReadBlobsResponse.Response.newBuilder()
            .setDigest(WireDigests.of(digest))
            .setData(ByteString.copyFromUtf8("here"))
            .build();
    BatchReadBlobsResponse.Response missing =
        BatchReadBlobsResponse.Response.newBuilder()
            .setDigest(WireDigests.of(digest))
            .setStatus(com.google.rpc.Status.newBuilder().setCode(Status.Code.NOT_FOUND.value()))
            .build();
    for (List<BatchReadBlobsResponse.Response> both :
        List.of(List.of(bytes, missing), List.of(missing, bytes))) {
      ring.server(0)
          .batchReads()
          .next(
              CasScript.correct()
                  .reply(BatchReadBlobsResponse.newBuilder().addAllResponses(both).build()));
      right(read(ring, List.of(digest)).get(digest));
    }
  }

  @Test
  @DisplayName("CAS-31 a blob that the answer leaves out is an error of that blob")
  void leftOut() {
    TestRing ring = ring(1);
    Digest digest = ring.put(0, 0);
    ring.server(0)
        .batchReads()
        .always(CasScript.correct().reply(BatchReadBlobsResponse.getDefaultInstance()));
    Map<Digest, ReadManyResult> all = read(ring, List.of(digest));
    assertThat(failure(all, digest)).hasMessageContaining("leaves out " + digest);
  }

  @Test
  @DisplayName("CAS-30 other bytes, more and fewer are DATA_LOSS of that blob")
  void wrongBytes() {
    TestRing ring = ring(1);
    Digest right = ring.put(0, 0);
    for (CasScript wrong :
        List.of(
            CasScript.correct().wrongByteAt(5),
            CasScript.correct().tooLong(1),
            CasScript.correct().tooShort(1))) {
      ring.server(0).batchReads().next(wrong);
      assertThat(failure(read(ring, List.of(right)), right))
          .isInstanceOf(DataLossException.class)
          .hasMessageContaining(right.toString());
    }
  }

  @Test
  @DisplayName("CAS-21 a dead shard's blobs are read from the next, in batches")
  void deadShard() {
    TestRing ring = ring(3);
    List<Digest> digests = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      digests.add(ring.put(i % 3, i % 3, (i + 1) % 3));
    }
    ring.kill(1);
    read(ring, digests).values().forEach(ReadManyTest::right);
    assertThat(ring.server(2).batchReads().calls()).hasSize(2);
    assertThat(ring.server(0).batchReads().calls()).hasSize(1);
  }

  @Test
  @DisplayName("CAS-23 what no neighbour of a dead shard has is not missing")
  void deadAndNowhere() {
    TestRing ring = ring(3, settings -> settings.retries(0));
    Digest lost = ring.put(1);
    Digest there = ring.put(0, 0);
    ring.kill(1);
    Map<Digest, ReadManyResult> all = read(ring, List.of(lost, there));
    right(all.get(there));
    assertThat(code(failure(all, lost))).isEqualTo(Status.Code.UNAVAILABLE);
    assertThat(failure(all, lost)).hasMessageContaining("s1 at ");
  }

  @Test
  @DisplayName("CAS-20 a suspect home is not the first to be asked")
  void suspect() {
    TestRing ring = ring(2);
    Digest mirrored = ring.put(0, 0, 1);
    ring.server(0).reads().always(CasScript.status(Status.UNAVAILABLE));
    ring.makeSuspect(0);
    right(read(ring, List.of(mirrored)).get(mirrored));
    assertThat(ring.server(0).batchReads().calls()).isEmpty();
    assertThat(ring.server(1).batchReads().calls()).hasSize(1);
  }

  @Test
  @DisplayName("CAS-3a a frozen shard leaves time for the next")
  void frozen() {
    TestRing ring = ring(2);
    Digest mirrored = ring.put(0, 0, 1);
    ring.server(0).always(CasScript.silence());
    List<ReadManyResult> all =
        ring.ring
            .readMany(List.of(mirrored))
            .transform(Deadlines.within(Duration.ofSeconds(2)))
            .collectList()
            .block(LONG);
    assertThat(all).isNotNull().singleElement().satisfies(ReadManyTest::right);
  }

  @Test
  @DisplayName("CAS-3 the caller's deadline ends all of it")
  void deadline() {
    TestRing ring = ring(1);
    ring.learnLimits();
    Digest digest = ring.put(0, 0);
    ring.server(0).batchReads().always(CasScript.silence());
    assertThatThrownBy(
            () ->
                ring.ring
                    .readMany(List.of(digest))
                    .transform(Deadlines.within(Duration.ofMillis(200)))
                    .blockLast(LONG))
        .isInstanceOf(DeadlineExceededException.class);
    ring.server(0).awaitOpenCalls(0);
    assertThat(ring.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-33 what is not asked for holds back the rest")
  void backpressure() {
    TestRing ring = ring(1);
    ring.learnLimits();
    List<Digest> digests = new ArrayList<>();
    for (int i = 0; i < 120; i++) {
      digests.add(ring.put(ring.contentOf(0, 400_000), 0));
    }
    StepVerifier.create(ring.ring.readMany(digests), 0)
        .thenRequest(1)
        .expectNextCount(1)
        .then(
            () -> {
              until("no call is open", () -> ring.ring.openCalls() == 0);
              // 10 of a batch, so 12 batches
              assertThat(ring.server(0).batchReads().calls()).hasSizeLessThan(10);
            })
        .thenRequest(Long.MAX_VALUE)
        .expectNextCount(119)
        .expectComplete()
        .verify(LONG);
  }
}
