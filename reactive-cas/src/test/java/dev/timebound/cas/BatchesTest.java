package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsRequest;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("CAS-31 how blobs are packed")
class BatchesTest {
  private static final int MESSAGE = 4 << 20;

  private static CasCapabilities limit(long bytes) {
    return new CasCapabilities(List.of(), bytes, false);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 10, 100, 1000, 100_000, 1_000_000})
  @DisplayName("CAS-31 a message with all around its blobs stays below gRPC's limit, both ways")
  void belowTheMessageLimit(int size) {
    byte[] content = new byte[size];
    Digest digest = Digest.of(content);
    List<Integer> blobs = new ArrayList<>();
    for (int i = 0; i < 5_000_000 / size + 2; i++) {
      blobs.add(size);
    }
    List<Integer> first =
        Batches.of(blobs, Integer::longValue, Batches.limit(limit(0))).packs().get(0);
    BatchUpdateBlobsRequest.Builder request =
        BatchUpdateBlobsRequest.newBuilder().setInstanceName("x".repeat(1000));
    BatchReadBlobsResponse.Builder answer = BatchReadBlobsResponse.newBuilder();
    for (int i = 0; i < first.size(); i++) {
      request
          .addRequestsBuilder()
          .setDigest(WireDigests.of(digest))
          .setData(ByteString.copyFrom(content));
      answer
          .addResponsesBuilder()
          .setDigest(WireDigests.of(digest))
          .setData(ByteString.copyFrom(content))
          .setStatus(Status.newBuilder().setMessage("as stored on disk 7"));
    }
    assertThat(request.build().getSerializedSize()).isLessThan(MESSAGE);
    assertThat(answer.build().getSerializedSize()).isLessThan(MESSAGE);
    if (size == 100_000) {
      assertThat(first.size() * size).as("and well filled").isGreaterThan(MESSAGE * 9 / 10);
    }
  }

  @Test
  @DisplayName("CAS-31 a server's own limit holds, message and all; above gRPC's it does not count")
  void limits() {
    assertThat(Batches.limit(limit(1 << 20))).isEqualTo(1 << 20);
    assertThat(Batches.limit(limit(0))).isLessThan(MESSAGE);
    assertThat(Batches.limit(limit(1L << 40))).isLessThan(MESSAGE);
    assertThat(Batches.limit(null)).isLessThan(1 << 20);
    Batches<Long> packed = Batches.of(List.of(500L, 500L, 1100L, 1L), n -> n, 1300);
    assertThat(packed.packs()).containsExactly(List.of(500L), List.of(500L, 1L));
    assertThat(packed.singles()).as("with what is around it, too large").containsExactly(1100L);
  }

  @Test
  @DisplayName("CAS-31 what just fits does, and all in one batch is known as that")
  void edges() {
    long around = 256;
    assertThat(Batches.of(List.of(44L), n -> n, 44 + around).packs()).containsExactly(List.of(44L));
    assertThat(Batches.of(List.of(45L), n -> n, 44 + around).singles()).containsExactly(45L);
    assertThat(Batches.of(List.of(44L, 44L), n -> n, 2 * (44 + around)).isOne()).isTrue();
    assertThat(Batches.of(List.of(44L, 45L), n -> n, 2 * (44 + around)).packs()).hasSize(2);
    assertThat(Batches.of(List.of(44L, 45L), n -> n, 2 * (44 + around)).isOne()).isFalse();
    assertThat(Batches.of(List.of(44L, 999L), n -> n, 2 * (44 + around)).isOne()).isFalse();
    assertThat(Batches.limit(null)).as("while nothing is known").isGreaterThan(1 << 19);
  }
}
