package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.BOUND;
import static dev.timebound.fetch.segments.Stores.ORDERS;
import static dev.timebound.fetch.segments.Stores.append;
import static dev.timebound.fetch.segments.Stores.bases;
import static dev.timebound.fetch.segments.Stores.bytes;
import static dev.timebound.fetch.segments.Stores.got;
import static dev.timebound.fetch.segments.Stores.open;
import static dev.timebound.fetch.segments.Stores.partition;
import static dev.timebound.fetch.segments.Stores.read;
import static dev.timebound.fetch.segments.Stores.segment;
import static dev.timebound.fetch.segments.Stores.small;
import static dev.timebound.fetch.segments.Stores.threes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.TopicPartition;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;

@DisplayName("Appends")
@NullUnmarked // fields are set before each test
class AppendTest extends OnFaultyDisk {
  @Nested
  @DisplayName("roll")
  class Rolls {
    @Test
    @DisplayName("a segment is full at its size, and named by its base offset")
    void rolls() throws IOException {
      append(store, 13);
      assertThat(Stores.files(partition(directory)).stream().filter(f -> f.endsWith(".segment")))
          .containsExactly(
              "00000000000000000000.segment",
              "00000000000000000018.segment",
              "00000000000000000036.segment");
      assertThat(Files.size(segment(directory, 0))).isEqualTo(32 + 6 * 140);
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 13));
    }

    @Test
    @DisplayName("a batch larger than a segment has one of its own")
    void large() {
      append(store, 1);
      got(store.append(ORDERS, bytes(3, 700_000), 1, 1));
      got(store.append(ORDERS, bytes(4, 5000), 1, 1));
      append(store, 1);
      assertThat(bases(read(store, 0))).containsExactly(0L, 3L, 4L, 5L);
      assertThat(read(store, 3).get(0).bytes()).isEqualTo(bytes(3, 700_000));
      reopen(small(directory));
      assertThat(read(store, 3).get(0).bytes()).isEqualTo(bytes(3, 700_000));
    }

    @Test
    @DisplayName("a batch of no bytes is refused, and takes no offset")
    void empty() {
      assertThatThrownBy(() -> got(store.append(ORDERS, bytes(0, 0), 1000, -1)))
          .hasMessageStartingWith("bytes: 0 (expected: 1 to ");
      assertThat(got(store.append(ORDERS, bytes(0, 1), 1000, -1))).isZero();
    }
  }

  @Nested
  @DisplayName("that fail")
  class Fail {
    private void fails(int size, String... told) {
      assertThatThrownBy(() -> got(store.append(ORDERS, bytes(9, size), 3, 1)))
          .isInstanceOf(SegmentStoreException.class)
          .hasMessageContainingAll(told);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 39, 40, 60, 139})
    @DisplayName(
        "FS-4 for a full disk leave the log as it was, readable, and open once there is room")
    void full(int room) throws IOException {
      append(store, 4);
      disk.room = room;
      fails(100, "append to orders-0 failed", segment(directory, 0).toString(), "No space left");
      assertThat(got(store.offsets(ORDERS))).isEqualTo(Offsets.of(0, 12, 12));
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 4));
      Path killed = Stores.killed(directory);
      fails(100, "No space left");
      disk.room = Long.MAX_VALUE;
      append(store, 9);
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 13));
      SegmentStore other = open(small(killed));
      assertThat(bases(read(other, 0))).isEqualTo(threes(0, 4));
      Stores.close(other);
    }

    @Test
    @DisplayName("FS-4 of several at once those that were written before it have returned")
    void several() {
      append(store, 1);
      // a group is written where it fills the buffer: some fit, some do not
      disk.room = 700_000;
      List<Throwable> failed = new ArrayList<>();
      List<Long> written = new ArrayList<>();
      Flux.range(0, 200)
          .flatMap(
              i ->
                  store
                      .append(ORDERS, base -> bytes(base, 5000), 3, 1)
                      .doOnNext(written::add)
                      .onErrorResume(
                          e -> {
                            failed.add(e);
                            return reactor.core.publisher.Mono.empty();
                          }),
              200)
          .blockLast(BOUND);
      assertThat(written).isNotEmpty();
      assertThat(failed).isNotEmpty().hasOnlyElementsOfType(SegmentStoreException.class);
      disk.room = Long.MAX_VALUE;
      append(store, 1);
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, written.size() + 2));
      reopen(small(directory));
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, written.size() + 2));
    }

    @Test
    @DisplayName("FS-4 as a segment cannot be made leave the one before it in use")
    void noSegment() throws IOException {
      append(store, 6);
      disk.creates = false;
      fails(100, "append to orders-0 failed", "Permission denied");
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 6));
      disk.creates = true;
      append(store, 3);
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 9));
      assertThat(Stores.files(partition(directory))).contains("00000000000000000018.segment");
    }

    @Test
    @DisplayName("FS-4 and cannot be taken off close the partition for appends, not for reads")
    void closes() {
      append(store, 4);
      disk.room = 60;
      disk.truncates = false;
      fails(100, "No space left");
      disk.room = Long.MAX_VALUE;
      fails(100, "orders-0 takes no appends until it is opened anew", "No space left");
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 4));
      disk.truncates = true;
      reopen(small(directory));
      append(store, 1);
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 5));
    }

    @Test
    @DisplayName("FS-4 for an fsync close the partition: nobody knows what is on the disk")
    void fsync() {
      reopen(small(directory).fsync(Fsync.eachAppend()));
      append(store, 2);
      disk.forces = false;
      fails(100, "append to orders-0 failed", "Input/output error");
      disk.forces = true;
      fails(100, "takes no appends", "fsync");
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 2));
      reopen(small(directory));
      append(store, 1);
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 3));
    }

    @Test
    @DisplayName("by what makes their bytes fail alone, and take no offset")
    void function() {
      List<Throwable> failed = new ArrayList<>();
      Flux.range(0, 9)
          .flatMap(
              i ->
                  store
                      .append(
                          ORDERS,
                          base -> {
                            if (i % 3 == 1) {
                              throw new IllegalArgumentException("no " + i);
                            }
                            return bytes(base, 100);
                          },
                          3,
                          1)
                      .onErrorResume(
                          e -> {
                            failed.add(e);
                            return reactor.core.publisher.Mono.empty();
                          }))
          .blockLast(BOUND);
      assertThat(failed).extracting(Throwable::getMessage).contains("no 1", "no 4", "no 7");
      assertThat(bases(read(store, 0))).isEqualTo(threes(0, 6));
    }

    @Test
    @DisplayName("to a partition that there is none of, or after the end")
    void unknown() {
      TopicPartition none = new TopicPartition("none", 0);
      assertThatThrownBy(() -> got(store.append(none, bytes(0, 1), 1, 1)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("partition: none-0 (expected: one that was created)");
      Stores.close(store);
      fails(1, "orders-0: the store was closed");
      assertThatThrownBy(() -> read(store, 0)).hasMessageContaining("the store was closed");
    }
  }
}
