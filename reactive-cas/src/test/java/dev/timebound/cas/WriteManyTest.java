package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.TestRing.code;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsResponse;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;

@DisplayName("CAS-31 writing many")
class WriteManyTest {
  private static final int MIB = 1 << 20;

  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  private TestRing ring(int shards) {
    return ring(shards, settings -> settings);
  }

  private static Map<Digest, WriteManyResult> write(TestRing ring, List<byte[]> blobs) {
    CompletableFuture<List<WriteManyResult>> all =
        ring.ring.writeMany(blobs).collectList().toFuture();
    ring.passPauses(all);
    Map<Digest, WriteManyResult> byDigest = new HashMap<>();
    for (WriteManyResult result : all.join()) {
      assertThat(byDigest.put(result.digest(), result)).as("each once").isNull();
    }
    assertThat(byDigest).hasSameSizeAs(blobs);
    return byDigest;
  }

  @Test
  @DisplayName("CAS-26 CAS-31 each blob to its home, in batches, large ones by themselves")
  void grouped() {
    TestRing ring = ring(4);
    List<byte[]> blobs = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      blobs.add(ring.contentOf(i % 4, 500 + i));
    }
    blobs.add(ring.contentOf(2, 5 * MIB));
    blobs.add(new byte[0]);
    write(ring, blobs).values().forEach(result -> assertThat(result.failure()).isNull());
    for (int i = 0; i < 200; i++) {
      for (int server = 0; server < 4; server++) {
        assertThat(ring.server(server).has(Digest.of(blobs.get(i)))).isEqualTo(server == i % 4);
      }
    }
    for (int server = 0; server < 4; server++) {
      assertThat(ring.server(server).batchUpdates().calls()).hasSize(1);
      assertThat(ring.server(server).writes().calls()).hasSize(server == 2 ? 1 : 0);
    }
    assertThat(ring.server(2).get(Digest.of(blobs.get(200)))).isEqualTo(blobs.get(200));
  }

  @Test
  @DisplayName("CAS-31 no batch is above what gRPC's server takes, message and all")
  void messageLimit() {
    TestRing ring = ring(1);
    List<byte[]> blobs = new ArrayList<>();
    for (int i = 0; i < 40_000; i++) {
      blobs.add(
          ("blob number " + i + " ").repeat(6).getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }
    write(ring, blobs).values().forEach(result -> assertThat(result.failure()).isNull());
    assertThat(ring.server(0).digests()).hasSize(40_000);
    assertThat(ring.server(0).batchUpdates().calls())
        .allSatisfy(call -> assertThat(call.requestBytes()).isLessThan(4 * MIB));
  }

  @Test
  @DisplayName("CAS-26 a dead home fails its blobs, and they go nowhere else")
  void deadHome() {
    TestRing ring = ring(3);
    byte[] lost = ring.contentOf(1, 100);
    byte[] kept = ring.contentOf(0, 100);
    ring.kill(1);
    Map<Digest, WriteManyResult> all = write(ring, List.of(lost, kept));
    assertThat(all.get(Digest.of(kept))).isEqualTo(new WriteManyResult(Digest.of(kept), null));
    assertThat(all.get(Digest.of(lost)))
        .satisfies(
            result ->
                assertThat(result.failure())
                    .isInstanceOf(StatusRuntimeException.class)
                    .hasMessageContaining("s1 at "));
    assertThat(ring.server(0).has(Digest.of(lost))).isFalse();
    assertThat(ring.server(2).calls()).isEmpty();
  }

  @Test
  @DisplayName("CAS-31 a blob's status is its alone; one that asks for it is sent again, alone")
  void statuses() {
    TestRing ring = ring(1);
    byte[] good = ring.contentOf(0, 100);
    byte[] busy = ring.contentOf(0, 101);
    byte[] denied = ring.contentOf(0, 102);
    CasScript script = CasScript.correct().blobStatus(Digest.of(denied), Status.PERMISSION_DENIED);
    ring.server(0)
        .batchUpdates()
        .next(script.blobStatus(Digest.of(busy), Status.RESOURCE_EXHAUSTED));
    Map<Digest, WriteManyResult> all = write(ring, List.of(good, busy, denied));
    assertThat(all.values()).filteredOn(WriteManyResult::isOk).hasSize(2);
    assertThat(all.get(Digest.of(denied)))
        .satisfies(r -> assertThat(code(r.failure())).isEqualTo(Status.Code.PERMISSION_DENIED));
    assertThat(ring.server(0).batchUpdates().calls())
        .extracting(call -> call.digests().size())
        .containsExactly(3, 1);
  }

  @Test
  @DisplayName("CAS-31 a batch as a whole is retried; a blob left out of the answer is an error")
  void whole() {
    TestRing ring = ring(1);
    byte[] blob = ring.contentOf(0, 100);
    ring.server(0).batchUpdates().next(CasScript.status(Status.UNAVAILABLE));
    assertThat(write(ring, List.of(blob)).values()).allMatch(WriteManyResult::isOk);
    ring.server(0)
        .batchUpdates()
        .next(CasScript.correct().reply(BatchUpdateBlobsResponse.getDefaultInstance()));
    assertThat(write(ring, List.of(blob)).values())
        .singleElement()
        .satisfies(r -> assertThat(r.failure()).hasMessageContaining("leaves out"));
  }

  @Test
  @DisplayName("CAS-30 what is not what it is called is not sent")
  void wrongBytes() {
    TestRing ring = ring(1);
    byte[] right = ring.contentOf(0, 100);
    byte[] wrong = Arrays.copyOf(right, 99);
    byte[] other = ring.contentOf(0, 50);
    List<WriteManyResult> all =
        ring.ring
            .writeMany(Map.of(Digest.of(right), wrong, Digest.of(other), other))
            .collectList()
            .block(LONG);
    assertThat(all)
        .isNotNull()
        .filteredOn(r -> !r.isOk())
        .singleElement()
        .satisfies(r -> assertThat(r.failure()).isInstanceOf(DataLossException.class));
    assertThat(ring.server(0).digests()).containsExactly(Digest.of(other));
  }

  @Test
  @DisplayName("CAS-31 a server's own batch limit is kept to")
  void serversLimit() {
    try (ScriptedCas server = ScriptedCas.builder().batchLimit(10_000).start();
        CasRing ring =
            CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s0", server.hostAndPort()))))
                .build()) {
      List<byte[]> blobs = new ArrayList<>();
      for (int i = 0; i < 50; i++) {
        byte[] blob = new byte[1000];
        Arrays.fill(blob, (byte) i);
        blobs.add(blob);
      }
      blobs.add(new byte[10_001]);
      assertThat(ring.writeMany(blobs).collectList().block(LONG))
          .hasSize(51)
          .allMatch(WriteManyResult::isOk);
      List<Digest> digests = blobs.stream().map(Digest::of).toList();
      assertThat(ring.readMany(digests).collectList().block(LONG))
          .hasSize(51)
          .allMatch(ReadManyResult::isOk);
      assertThat(server.batchReads().calls()).extracting(CasCall::status).containsOnly(Status.OK);
    }
  }

  @Test
  @DisplayName("CAS-31 the first read of a server with a small limit is cut to it after all")
  void limitNotKnownYet() {
    try (ScriptedCas server = ScriptedCas.builder().batchLimit(10_000).start();
        CasRing ring =
            CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s0", server.hostAndPort()))))
                .build()) {
      List<Digest> digests = new ArrayList<>();
      for (int i = 0; i < 50; i++) {
        byte[] blob = new byte[1000];
        Arrays.fill(blob, (byte) i);
        digests.add(server.put(blob));
      }
      assertThat(ring.readMany(digests).collectList().block(LONG))
          .hasSize(50)
          .allMatch(ReadManyResult::isOk);
    }
  }

  @Test
  @DisplayName("CAS-31 nothing asked for is nothing")
  void nothing() {
    TestRing ring = ring(1);
    assertThat(ring.ring.readMany(List.of()).collectList().block(LONG)).isEmpty();
    assertThat(ring.ring.writeMany(List.of()).collectList().block(LONG)).isEmpty();
    assertThat(Flux.from(ring.ring.writeMany(Map.of())).collectList().block(LONG)).isEmpty();
  }
}
