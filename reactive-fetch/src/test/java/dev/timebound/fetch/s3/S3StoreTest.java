package dev.timebound.fetch.s3;

import static dev.timebound.fetch.s3.S3Bench.BOUND;
import static dev.timebound.fetch.s3.S3Bench.BUCKET;
import static dev.timebound.fetch.s3.S3Bench.bases;
import static dev.timebound.fetch.s3.S3Bench.bytes;
import static dev.timebound.fetch.s3.S3Bench.from;
import static dev.timebound.fetch.s3.S3Bench.got;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;

@DisplayName("Objects of the store in S3")
class S3StoreTest {
  private final S3Bench bench = new S3Bench();
  private final S3Store other = bench.store(bench.client, all -> all.firstReadBytes(64));

  @AfterEach
  void nothingIsLeft() {
    bench.close();
  }

  private static S3Store.NewBatch batch(int value, int size) {
    return new S3Store.NewBatch(base -> bytes(value, size), 2, value);
  }

  /** Two objects of three batches of two records: 0-5 and 6-11. */
  private TopicPartition twoOfThree() {
    TopicPartition partition = bench.newPartition();
    got(bench.store.appendAll(partition, List.of(batch(0, 500), batch(1, 500), batch(2, 500))));
    got(bench.store.appendAll(partition, List.of(batch(3, 500), batch(4, 500), batch(5, 500))));
    return partition;
  }

  private byte[] object(String key) {
    return bench
        .behind
        .getObject(get -> get.bucket(BUCKET).key(key), AsyncResponseTransformer.toBytes())
        .join()
        .asByteArray();
  }

  private void replace(String key, byte[] bytes) {
    bench
        .behind
        .putObject(put -> put.bucket(BUCKET).key(key), AsyncRequestBody.fromBytes(bytes))
        .join();
  }

  private void refused(TopicPartition partition, long offset, String... words) {
    S3Store fresh = bench.store(bench.client, all -> all.firstReadBytes(64));
    assertThatThrownBy(() -> bench.read(fresh, partition, from(offset, 10_000)))
        .isInstanceOf(S3StoreException.class)
        .hasMessageContaining("s3://" + BUCKET + "/" + bench.prefix)
        .hasMessageContainingAll(words);
  }

  @Test
  @DisplayName("every offset is found in the object that holds it, whatever is known of it")
  void everyOffset() {
    TopicPartition partition = twoOfThree();
    for (S3Store store : List.of(bench.store, other)) {
      for (long offset = 0; offset < 12; offset++) {
        assertThat(bases(bench.read(store, partition, from(offset, 500))))
            .as("offset %s", offset)
            .containsExactly(offset / 2 * 2);
      }
    }
  }

  @Test
  @DisplayName("a read asks for the range it needs, and goes on in the next object")
  void ranges() {
    TopicPartition partition = twoOfThree();
    bench.requests.sent().clear();
    assertThat(bases(bench.read(bench.store, partition, from(4, 1000)))).containsExactly(4L, 6L);
    assertThat(bench.requests.sent("GET"))
        .hasSize(2)
        .allSatisfy(request -> assertThat(request).contains("bytes="));
    int index = ObjectIndex.length(3);
    assertThat(bench.requests.sent("GET").get(0))
        .endsWith("bytes=" + (index + 1000) + "-" + (index + 1499));
    assertThat(bench.requests.sent("GET").get(1)).endsWith("bytes=" + index + "-" + (index + 499));
  }

  @Test
  @DisplayName("two writers do not take one offset: no append is lost, none hides another")
  void twoWriters() {
    TopicPartition partition = bench.newPartition();
    S3Store second = bench.store(bench.client, all -> all);
    List<Long> offsets =
        got(
            Flux.range(0, 40)
                .flatMapSequential(
                    i ->
                        (i % 2 == 0 ? bench.store : second)
                            .append(partition, bytes(i, 10), 1, i)
                            .delaySubscription(Duration.ofMillis(i)),
                    40)
                .collectList());
    assertThat(offsets).doesNotHaveDuplicates().hasSize(40);
    List<RecordBatch> batches = bench.read(other, partition, from(0, 10_000));
    assertThat(bases(batches)).containsExactlyElementsOf(LongStream.range(0, 40).boxed().toList());
    for (int i = 0; i < 40; i++) {
      assertThat(batches.get(offsets.get(i).intValue()).bytes()).isEqualTo(bytes(i, 10));
    }
  }

  @Test
  @DisplayName("appends that come while one is written go into one object, in their order")
  void grouped() {
    TopicPartition partition = bench.newPartition();
    bench.requests.sent().clear();
    List<Mono<Long>> appends =
        IntStream.range(0, 50)
            .mapToObj(i -> bench.store.append(partition, bytes(i, 10), 1, i))
            .toList();
    assertThat(got(Flux.mergeSequential(appends, 50, 1).collectList()))
        .containsExactlyElementsOf(LongStream.range(0, 50).boxed().toList());
    assertThat(bench.requests.sent("PUT")).hasSizeLessThan(10);
    assertThat(bench.read(other, partition, from(0, 10_000))).hasSize(50);
  }

  @Test
  @DisplayName("an append whose bytes cannot be had fails alone, and takes no offset")
  void failsAlone() {
    TopicPartition partition = bench.newPartition();
    Mono<Long> broken =
        bench.store.append(
            partition,
            base -> {
              throw new IllegalStateException("no bytes");
            },
            1,
            1);
    assertThatThrownBy(() -> got(bench.store.append(partition, bytes(1, 0), 1, 1)))
        .hasMessage("bytes: none (expected: one at least)");
    assertThat(
            got(
                Flux.mergeSequential(
                        List.of(
                            bench.store.append(partition, bytes(1, 10), 1, 1),
                            broken.onErrorReturn(IllegalStateException.class, -7L),
                            bench.store.append(partition, bytes(2, 10), 1, 1)),
                        3,
                        1)
                    .collectList()))
        .containsExactlyInAnyOrder(0L, -7L, 1L);
  }

  @Test
  @DisplayName("the start moves to an offset within an object; the newest object stays")
  void retention() {
    TopicPartition partition = twoOfThree();
    bench.store.deleteBefore(partition, 9).block(BOUND);
    assertThat(got(other.offsets(partition))).isEqualTo(Offsets.of(9, 12, 12));
    assertThat(bases(bench.read(other, partition, from(0, 10_000)))).containsExactly(8L, 10L);
    bench.store.deleteBefore(partition, 12).block(BOUND);
    assertThat(got(other.offsets(partition))).isEqualTo(Offsets.of(12, 12, 12));
    bench.store.deleteBefore(partition, 3).block(BOUND);
    assertThat(got(other.offsets(partition)).logStart()).isEqualTo(12);
    assertThat(got(other.append(partition, bytes(1, 10), 1, 1))).isEqualTo(12);
    assertThatThrownBy(() -> bench.store.deleteBefore(partition, 14).block(BOUND))
        .hasMessage("offset: 14 (expected: <= 13)");
  }

  @Test
  @DisplayName("by time: across objects, and past what was deleted")
  void byTime() {
    TopicPartition partition = twoOfThree();
    for (S3Store store : List.of(bench.store, other)) {
      for (int time = 0; time < 6; time++) {
        assertThat(got(store.offsetFor(partition, time, Isolation.READ_UNCOMMITTED)))
            .isEqualTo(new TimestampOffset(2L * time, time));
      }
      assertThat(got(store.offsetFor(partition, 6, Isolation.READ_UNCOMMITTED)))
          .isEqualTo(TimestampOffset.NONE);
    }
    bench.store.deleteBefore(partition, 7).block(BOUND);
    assertThat(got(other.offsetFor(partition, 0, Isolation.READ_UNCOMMITTED)))
        .isEqualTo(new TimestampOffset(7, 3));
  }

  @Test
  @DisplayName("an object deleted under a reader, or not as it was written: bucket, key, and what")
  void damaged() {
    TopicPartition partition = twoOfThree();
    String second = bench.keys.object(partition, 6);
    byte[] whole = object(second);
    byte[] flipped = whole.clone();
    flipped[flipped.length - 1] ^= 1;
    replace(second, flipped);
    refused(partition, 6, second, "the batch at 10 with crc32c", "(expected: ");
    byte[] index = whole.clone();
    index[60] ^= 1;
    replace(second, index);
    refused(partition, 6, second, "an index of crc32c");
    replace(second, Arrays.copyOf(whole, whole.length - 200));
    refused(partition, 6, second, "ends at byte", "as its index says");
    replace(second, new byte[1000]);
    refused(partition, 6, second, "an object that begins with 0", "54424f424a454301");
    replace(second, object(bench.keys.object(partition, 0)));
    refused(partition, 6, second, "base offset 0", "6, as it is named");
    got(bench.store.offsets(partition)); // as a fetcher asks before it reads
    bench.behind.deleteObject(delete -> delete.bucket(BUCKET).key(second)).join();
    assertThatThrownBy(() -> bench.read(bench.store, partition, from(6, 10_000)))
        .isInstanceOf(S3StoreException.class)
        .hasMessageContaining(second)
        .hasMessageContaining("404 NoSuchKey");
  }

  @Test
  @DisplayName("topics: made once, their names of any letters; none where there is no such bucket")
  void topics() {
    assertThat(got(bench.store.createTopic("a/b ä.*", 3))).isEqualTo(3);
    assertThat(got(other.createTopic("a/b ä.*", 5))).isEqualTo(3);
    TopicPartition third = new TopicPartition("a/b ä.*", 2);
    assertThat(got(other.append(third, bytes(1, 10), 1, 1))).isZero();
    assertThat(bench.read(bench.store, third, from(0, 100))).hasSize(1);
    assertThatThrownBy(() -> got(other.append(new TopicPartition("none", 0), bytes(1, 10), 1, 1)))
        .hasMessage("partition: none-0 (expected: one that was created)");
    S3Store nowhere = S3Store.builder(bench.client, "no-such-bucket").build();
    assertThatThrownBy(() -> got(nowhere.existing(Set.of(third))))
        .isInstanceOf(S3StoreException.class)
        .hasMessageContaining("404 NoSuchBucket");
  }

  @Test
  @DisplayName("memory for indexes is bounded")
  void bounded() {
    S3Store small = bench.store(bench.client, all -> all.indexCacheBytes(500));
    TopicPartition partition = bench.filled(8, 10);
    assertThat(bench.read(small, partition, from(0, 10_000))).hasSize(8);
    assertThat(small.indexBytes()).isBetween(1L, 500L);
  }

  @Test
  @DisplayName("settings are validated, and say what was expected")
  void settings() {
    S3Store.Builder builder = S3Store.builder(bench.client, "bucket");
    List<Runnable> calls = new ArrayList<>();
    calls.add(() -> S3Store.builder(bench.client, " "));
    calls.add(() -> builder.objectBytes(1023));
    calls.add(() -> builder.firstReadBytes(15));
    calls.add(() -> builder.indexCacheBytes(-1));
    calls.add(() -> builder.maxWaiting(0));
    calls.add(() -> builder.callTimeout(Duration.ZERO));
    calls.add(() -> builder.prefix("p".repeat(513)));
    calls.add(() -> bench.store.createTopic("ä".repeat(50), 1));
    calls.add(() -> bench.store.createTopic("topic", 0));
    calls.add(() -> bench.store.appendAll(new TopicPartition("topic", 0), List.of()));
    calls.add(() -> new S3Store.NewBatch(base -> ByteBuffer.allocate(1), 0, 1));
    for (Runnable call : calls) {
      assertThatThrownBy(call::run)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageMatching("(?s)\\w+: .* \\(expected: .*\\)");
    }
    assertThat(builder.build().finishesInBackground()).isTrue();
    assertThat(builder.finishInBackground(false).build().finishesInBackground()).isFalse();
  }
}
