package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.MessageLite;
import dev.timebound.cas.BlobPresence.State;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import io.grpc.Status;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** Answers about many blobs that name what is no digest, or was not asked for. */
@DisplayName("CAS-31 CAS-25 what an answer does not tell takes nothing from what it tells")
class MalformedAnswersTest {
  private static final String BAD = "hash: XYZ (expected: 64 lower-case hex digits)";

  private final TestRing t = TestRing.of(2, settings -> settings.retries(0));
  private final byte[] first = t.contentOf(0, 100);
  private final byte[] second = t.contentOf(0, 100);
  private final Digest one = Digest.of(first);
  private final Digest two = Digest.of(second);

  @AfterEach
  void close() {
    t.close();
  }

  private static RemoteExecution.Digest bad(String hash) {
    return RemoteExecution.Digest.newBuilder().setHash(hash).setSizeBytes(5).build();
  }

  private static CasScript says(MessageLite answer) {
    return CasScript.correct().reply(answer);
  }

  private static void told(@Nullable Throwable failure, String... words) {
    assertThat(failure).isNotNull();
    assertThat(Status.fromThrowable(failure).getCode()).isEqualTo(Status.Code.INTERNAL);
    assertThat(failure.getMessage()).contains("s0: ").contains(words);
  }

  @Nested
  class Batches {
    private BatchReadBlobsResponse.Response bytes(byte[] content, RemoteExecution.Digest digest) {
      return BatchReadBlobsResponse.Response.newBuilder()
          .setDigest(digest)
          .setData(ByteString.copyFrom(content))
          .build();
    }

    private @Nullable Throwable readsTheOther(String hash) {
      t.server(0)
          .batchReads()
          .next(
              says(
                  BatchReadBlobsResponse.newBuilder()
                      .addResponses(bytes(first, bad(hash)))
                      .addResponses(bytes(second, WireDigests.of(two)))
                      .build()));
      List<ReadManyResult> all = t.ring.readMany(List.of(one, two)).collectList().block(LONG);
      assertThat(all).isNotNull().hasSize(2);
      Map<Digest, ReadManyResult> byDigest =
          all.stream().collect(Collectors.toMap(ReadManyResult::digest, result -> result));
      assertThat(byDigest.get(two)).isNotNull().matches(ReadManyResult::isOk);
      ReadManyResult failed = byDigest.get(one);
      return failed == null ? null : failed.failure();
    }

    @Test
    @DisplayName("CAS-31 of a batch that is read only the blob that is left out for it fails")
    void read() {
      told(readsTheOther("XYZ"), "leaves out " + one, "what is no digest: " + BAD);
      assertThat(t.server(0).batchReads().calls()).hasSize(1);
    }

    @Test
    @DisplayName("CAS-31 however long what it sends in place of a digest is, the error is short")
    void shortened() {
      Throwable failure = readsTheOther("g".repeat(1 << 20));
      told(failure, "gggg…", "(expected: 64 lower-case hex digits)");
      assertThat(failure).isNotNull();
      assertThat(failure.getMessage()).hasSizeLessThan(500);
    }

    @Test
    @DisplayName("CAS-31 of a batch that is written too")
    void written() {
      t.server(0)
          .batchUpdates()
          .next(
              says(
                  BatchUpdateBlobsResponse.newBuilder()
                      .addResponses(
                          BatchUpdateBlobsResponse.Response.newBuilder().setDigest(bad("XYZ")))
                      .addResponses(
                          BatchUpdateBlobsResponse.Response.newBuilder()
                              .setDigest(WireDigests.of(two)))
                      .build()));
      List<WriteManyResult> all =
          t.ring.writeMany(List.of(first, second)).collectList().block(LONG);
      assertThat(all).isNotNull().hasSize(2);
      for (WriteManyResult result : all) {
        if (result.digest().equals(two)) {
          assertThat(result.isOk()).isTrue();
        } else {
          told(result.failure(), "leaves out " + one, "what is no digest: " + BAD);
        }
      }
    }
  }

  @Nested
  class Existence {
    private BlobPresence found(RemoteExecution.Digest... missing) {
      t.server(0)
          .findMissing()
          .next(
              says(
                  FindMissingBlobsResponse.newBuilder()
                      .addAllMissingBlobDigests(List.of(missing))
                      .build()));
      BlobPresence found = t.ring.findMissing(Set.of(one, two)).block(LONG);
      assertThat(found).isNotNull();
      return found;
    }

    @Test
    @DisplayName("CAS-25 what is named is missing; of the rest nobody knows whether it was meant")
    void malformed() {
      BlobPresence found = found(bad("XYZ"), WireDigests.of(two));

      assertThat(found.of(two)).isEqualTo(State.MISSING);
      assertThat(found.of(one)).isEqualTo(State.UNKNOWN);
      told(found.unknown().get(one), "does not tell what is missing", "no digest: " + BAD);
      assertThat(asked(0)).isEqualTo(1);
      assertThat(asked(1)).isZero();
    }

    @Test
    @DisplayName("CAS-25 a digest that was not asked for may stand for another one as well")
    void notAskedFor() {
      BlobPresence found = found(WireDigests.of(t.put(0)), WireDigests.of(two));

      assertThat(found.of(two)).isEqualTo(State.MISSING);
      assertThat(found.of(one)).isEqualTo(State.UNKNOWN);
      told(found.unknown().get(one), "names a digest that was not asked for");
    }

    @Test
    @DisplayName("CAS-25 CAS-23 a neighbour whose answer does not tell has said nothing")
    void neighbour() {
      t.server(0).findMissing().always(CasScript.status(Status.UNAVAILABLE));
      t.server(1)
          .findMissing()
          .always(
              says(
                  FindMissingBlobsResponse.newBuilder()
                      .addMissingBlobDigests(bad("XYZ"))
                      .addMissingBlobDigests(WireDigests.of(two))
                      .build()));
      BlobPresence found = t.ring.findMissing(Set.of(one, two)).block(LONG);

      assertThat(found).isNotNull();
      assertThat(found.unknown()).containsOnlyKeys(one, two);
      assertThat(found.unknown().values())
          .allSatisfy(why -> assertThat(why).hasMessageContaining("UNAVAILABLE: s0 at "));
    }

    private int asked(int server) {
      return t.server(server).findMissing().calls().size();
    }
  }
}
