package dev.timebound.fetch.s3;

import static dev.timebound.fetch.Eventually.eventually;
import static dev.timebound.fetch.s3.S3Bench.BOUND;
import static dev.timebound.fetch.s3.S3Bench.from;
import static dev.timebound.fetch.s3.S3Bench.got;
import static dev.timebound.fetch.s3.S3Bench.reading;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchClient;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.SharePolicy;
import dev.timebound.fetch.TopicPartition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.Disposable;
import reactor.test.StepVerifier;
import reactor.test.scheduler.VirtualTimeScheduler;

@DisplayName("Reads of S3 that stall")
class S3StallTest {
  private final S3Bench bench = new S3Bench();

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  /** A frozen road does not see its ends; one that was answered would be kept for the next call. */
  private void connectionsWereClosed() {
    bench.detour.heal();
    eventually(() -> assertThat(bench.detour.openClientSockets()).isZero());
  }

  @ParameterizedTest
  @EnumSource(SharePolicy.class)
  @DisplayName(
      "FE-10 FE-22 one partition of three stalls: the others are answered, nothing is left")
  void amongOthers(SharePolicy policy) {
    TopicPartition stalled = bench.filled(1, 20);
    TopicPartition one = bench.filled(1, 20);
    TopicPartition two = bench.filled(1, 20);
    bench.stall(stalled);
    try (PartitionFetcher fetcher =
        PartitionFetcher.builder(bench.store)
            .policy(policy)
            .extraTime(Duration.ofSeconds(1))
            .build()) {
      FetchRequest request =
          FetchRequest.builder()
              .maxWait(Duration.ofSeconds(2))
              .minBytes(40)
              .partition(stalled, 0)
              .partition(one, 0)
              .partition(two, 0)
              .build();
      FetchResponse response = got(fetcher.fetch(request));
      assertThat(response.partition(stalled).error()).isEqualTo(ErrorCode.NONE);
      assertThat(response.partition(stalled).batches()).isEmpty();
      assertThat(response.partition(stalled).highWatermark()).isOne();
      assertThat(response.partition(one).batches()).hasSize(1);
      assertThat(response.partition(two).batches()).hasSize(1);
    }
    bench.nothingOpen();
    connectionsWereClosed();
  }

  @Test
  @DisplayName("FE-22 a cancel ends the request and closes the connection it was on")
  void cancel() {
    TopicPartition partition = bench.filled(1, 20);
    bench.stall(partition);
    // without a deadline, which would end the request too, if later
    Disposable read = bench.store.read(partition, from(0, 1000), Deadline.none()).subscribe();
    eventually(() -> assertThat(bench.detour.openClientSockets()).isOne());
    eventually(() -> assertThat(bench.requests.open()).isOne());
    read.dispose();
    bench.nothingOpen();
    connectionsWereClosed();
  }

  @Test
  @DisplayName("FE-10 FE-22 a body that stalls: what came is handed on, and a cancel closes it")
  void inTheBody() {
    TopicPartition partition = bench.newPartition();
    List<S3Store.NewBatch> batches = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      int value = i;
      batches.add(new S3Store.NewBatch(base -> S3Bench.bytes(value, 100_000), 1, i));
    }
    got(bench.store.appendAll(partition, batches));
    bench.requests.detour(bench.keys.log(partition));
    bench.detour.trickle(1_000_000);
    List<RecordBatch> came = new ArrayList<>();
    StepVerifier.create(
            reading(bench.store, partition, from(0, 10_000_000), Deadline.none())
                .doOnNext(came::add)
                .doOnNext(
                    batch -> {
                      if (came.size() == 2) {
                        bench.detour.freezeAll();
                      }
                    })
                .transform(Deadlines.within(Duration.ofSeconds(3))))
        .thenConsumeWhile(any -> true)
        .expectError(DeadlineExceededException.class)
        .verify(BOUND);
    assertThat(came).hasSizeBetween(2, 19);
    bench.nothingOpen();
    connectionsWereClosed();
  }

  @Test
  @DisplayName("FE-22 the deadline bounds each request, though nobody cancels it")
  void deadlineOfTheCall() {
    TopicPartition partition = bench.filled(1, 20);
    bench.stall(partition);
    Deadline deadline = Deadline.after(Duration.ofSeconds(1));
    assertThatThrownBy(
            () ->
                bench
                    .store
                    .read(partition, from(0, 1000), Deadline.none())
                    .contextWrite(context -> context.put(Deadline.class, deadline))
                    .blockLast(BOUND))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("s3://" + S3Bench.BUCKET + "/" + bench.keys.log(partition));
    connectionsWereClosed();
  }

  @Test
  @DisplayName("FE-4 FE-22 no request for a budget that has passed, and none after it has")
  void budget() {
    TopicPartition partition = bench.filled(4, 20);
    bench.requests.sent().clear();
    assertThat(
            reading(bench.store, partition, from(0, 1000), Deadline.after(Duration.ZERO))
                .collectList()
                .block(BOUND))
        .isEmpty();
    assertThat(bench.requests.sent()).isEmpty();
    VirtualTimeScheduler time = VirtualTimeScheduler.create();
    Deadline budget = Deadline.after(Duration.ofSeconds(1), time);
    List<RecordBatch> batches =
        got(
            reading(bench.store, partition, from(0, 1000), budget)
                .doOnNext(batch -> time.advanceTimeBy(Duration.ofSeconds(2)))
                .collectList());
    assertThat(S3Bench.bases(batches)).containsExactly(0L);
    assertThat(bench.requests.sent("GET")).hasSize(1);
    time.dispose();
  }

  @Test
  @DisplayName("FE-24 a read that its request gave up goes on, and serves the client's next one")
  void inBackground() {
    TopicPartition partition = bench.filled(2, 20);
    bench.stall(partition);
    try (PartitionFetcher fetcher =
            PartitionFetcher.builder(bench.store).extraTime(Duration.ofMillis(100)).build();
        FetchClient client = fetcher.client()) {
      FetchRequest request =
          FetchRequest.builder().maxWait(Duration.ofSeconds(2)).partition(partition, 0).build();
      assertThat(got(client.fetch(request)).partition(partition).batches()).isEmpty();
      assertThat(client.backgroundReads()).isOne();
      int reads = bench.requests.sent("GET").size();
      bench.detour.thaw();
      bench.nothingOpen();
      bench.detour.freezeAll();
      assertThat(got(client.fetch(request)).partition(partition).batches())
          .as("what came meanwhile")
          .hasSize(1);
      assertThat(bench.requests.sent("GET")).as("no other read of it").hasSize(reads);
    }
    bench.nothingOpen();
  }
}
