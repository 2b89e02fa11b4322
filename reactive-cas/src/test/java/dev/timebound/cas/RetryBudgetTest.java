package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasRoute;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.deadline.RetryBudget;
import io.grpc.Status;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.scheduler.Schedulers;

@DisplayName("CAS-4 no retry is made that the budget does not grant")
class RetryBudgetTest {
  /** On the real clock: retries that are made all the same are seen, and not waited for. */
  private final TestRing ring =
      TestRing.of(
          1,
          settings ->
              settings
                  .scheduler(Schedulers.parallel())
                  .retryBudget(RetryBudget.builder().share(0).perSecond(0).build()));

  private final Digest digest = ring.put(0, 0);

  @AfterEach
  void close() {
    ring.close();
  }

  private static CasRoute fails(CasRoute route) {
    return route.always(CasScript.status(Status.ABORTED));
  }

  private static void oneCall(CasRoute route) {
    assertThat(route.calls()).hasSize(1);
  }

  private static void isAborted(Throwable failure) {
    assertThat(Status.fromThrowable(failure).getCode()).isEqualTo(Status.Code.ABORTED);
  }

  @Test
  @DisplayName("CAS-4 of a read")
  void read() {
    CasRoute route = fails(ring.server(0).reads());
    isAborted(failure(ring.ring.read(digest)));
    oneCall(route);
  }

  @Test
  @DisplayName("CAS-4 of a write")
  void write() {
    CasRoute route = fails(ring.server(0).writes());
    isAborted(failure(ring.ring.write(new byte[] {1})));
    oneCall(route);
  }

  @Test
  @DisplayName("CAS-4 of an existence check")
  void findMissing() {
    CasRoute route = fails(ring.server(0).findMissing());
    BlobPresence found = ring.ring.findMissing(Set.of(digest)).block(LONG);
    assertThat(found).isNotNull();
    assertThat(found.unknown()).containsOnlyKeys(digest);
    oneCall(route);
  }

  @Test
  @DisplayName("CAS-4 of a batch, read or written")
  void batches() {
    CasRoute reads = fails(ring.server(0).batchReads());
    CasRoute writes = fails(ring.server(0).batchUpdates());
    isFailed(
        ring.ring.readMany(Set.of(digest)).map(ReadManyResult::isOk).collectList().block(LONG));
    isFailed(
        ring.ring
            .writeMany(List.of(new byte[] {1}))
            .map(WriteManyResult::isOk)
            .collectList()
            .block(LONG));
    oneCall(reads);
    oneCall(writes);
  }

  @Test
  @DisplayName("CAS-4 of one blob of a batch, read or written")
  void items() {
    byte[] blob = {1};
    CasScript aborted =
        CasScript.correct()
            .blobStatus(digest, Status.ABORTED)
            .blobStatus(Digest.of(blob), Status.ABORTED);
    CasRoute reads = ring.server(0).batchReads().always(aborted);
    CasRoute writes = ring.server(0).batchUpdates().always(aborted);
    isFailed(
        ring.ring.readMany(Set.of(digest)).map(ReadManyResult::isOk).collectList().block(LONG));
    isFailed(
        ring.ring.writeMany(List.of(blob)).map(WriteManyResult::isOk).collectList().block(LONG));
    oneCall(reads);
    oneCall(writes);
  }

  private static void isFailed(@Nullable List<Boolean> ok) {
    assertThat(ok).containsExactly(false);
  }
}
