package dev.timebound.samples.kafka.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.fetch.segments.SegmentStore;
import dev.timebound.fetch.segments.SegmentStoreException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@DisplayName("Topics in segment files")
@NullUnmarked // fields are set before each test
class SegmentTopicLogTest {
  private static final Duration BOUND = Duration.ofSeconds(60);
  private static final TopicPartition PARTITION = new TopicPartition("orders", 0);
  private static final int HEADER = 61;

  @TempDir Path directory;
  private SegmentTopicLog log;

  @BeforeEach
  void begin() {
    log = open();
    log.create("orders", 2).block(BOUND);
  }

  @AfterEach
  void end() {
    log.close().block(BOUND);
  }

  private SegmentTopicLog open() {
    return got(SegmentTopicLog.open(SegmentStore.builder(directory).segmentBytes(500).threads(2)));
  }

  private void reopen() {
    log.close().block(BOUND);
    log = open();
  }

  private static <T> T got(Mono<T> mono) {
    return Objects.requireNonNull(mono.block(BOUND));
  }

  /** Of one record, as a client's library writes its head. */
  private static ProducedBatch batch(long producer, int epoch, int sequence) {
    ByteBuffer bytes = ByteBuffer.allocate(HEADER + 40);
    bytes.putLong(43, producer).putShort(51, (short) epoch).putInt(53, sequence);
    return new ProducedBatch(bytes, 1, 1000, producer, (short) epoch, sequence);
  }

  private Appended append(long producer, int epoch, int sequence) {
    return got(log.append(PARTITION, batch(producer, epoch, sequence)));
  }

  @Test
  @DisplayName("topics are there when it is opened anew, and what is kept for itself is none")
  void topics() {
    reopen();
    assertThat(got(log.topics())).containsOnlyKeys("orders").containsEntry("orders", 2);
    assertThat(got(log.create("orders", 5))).isEqualTo(2);
    assertThat(got(log.append(new TopicPartition("orders", 2), batch(-1, -1, -1))).outcome())
        .isEqualTo(Appended.Outcome.UNKNOWN_PARTITION);
  }

  @Test
  @DisplayName("what a producer sends again after a restart is written once")
  void duplicates() {
    for (int i = 0; i < 20; i++) {
      assertThat(append(7, 0, i)).isEqualTo(Appended.written(i));
    }
    reopen();
    assertThat(append(7, 0, 17)).isEqualTo(new Appended(Appended.Outcome.DUPLICATE, 17));
    assertThat(append(7, 0, 21).outcome()).isEqualTo(Appended.Outcome.OUT_OF_ORDER);
    assertThat(append(7, 0, 20)).isEqualTo(Appended.written(20));
    assertThat(append(7, 1, 0)).isEqualTo(Appended.written(21));
    assertThat(append(7, 0, 21).outcome()).isEqualTo(Appended.Outcome.FENCED);
  }

  @Test
  @DisplayName("one that is sent again while it is on its way gets the first one's place")
  void onItsWay() {
    List<Appended> answers =
        got(
            Flux.range(0, 60)
                .flatMapSequential(i -> log.append(PARTITION, batch(7, 0, i / 3)), 9)
                .collectList());
    for (int i = 0; i < 60; i++) {
      assertThat(answers.get(i).baseOffset()).isEqualTo(i / 3);
    }
    assertThat(answers).filteredOn(a -> a.outcome() == Appended.Outcome.WRITTEN).hasSize(20);
    assertThat(answers).filteredOn(a -> a.outcome() == Appended.Outcome.DUPLICATE).hasSize(40);
  }

  @Test
  @DisplayName("one that failed is the next one still")
  void failed() throws IOException {
    append(7, 0, 0);
    append(7, 0, 1);
    append(7, 0, 2);
    Path partition = directory.resolve("topics/orders/0");
    Path aside = directory.resolve("topics/orders/aside");
    Files.move(partition, aside); // the next segment cannot be made
    assertThatThrownBy(() -> append(7, 0, 3)).isInstanceOf(SegmentStoreException.class);
    Files.move(aside, partition);
    assertThat(append(7, 0, 3)).isEqualTo(Appended.written(3));
    assertThat(append(7, 0, 3)).isEqualTo(new Appended(Appended.Outcome.DUPLICATE, 3));
  }

  @Test
  @DisplayName("a producer's first batch failed: the one after it waits for it to be sent again")
  void firstFailed() throws IOException {
    for (int i = 0; i < 3; i++) {
      append(7, 0, i);
    }
    Path partition = directory.resolve("topics/orders/0");
    Path aside = directory.resolve("topics/orders/aside");
    Files.move(partition, aside);
    assertThatThrownBy(() -> append(8, 0, 0)).isInstanceOf(SegmentStoreException.class);
    Files.move(aside, partition);
    assertThat(append(8, 0, 1).outcome()).isEqualTo(Appended.Outcome.OUT_OF_ORDER);
    assertThat(append(8, 0, 0)).isEqualTo(Appended.written(3));
    assertThat(append(8, 0, 1)).isEqualTo(Appended.written(4));
  }

  @Test
  @DisplayName("an unknown producer begins at 0, unless the log was too long to find it in")
  void unknownProducer() {
    got(log.newProducerId());
    append(7, 0, 0);
    reopen();
    assertThat(append(8, 0, 5).outcome()).isEqualTo(Appended.Outcome.OUT_OF_ORDER);
    ProducedBatch large = batch(-1, -1, -1);
    got(log.append(PARTITION, new ProducedBatch(large.bytes(), 30_000, 1000, -1, (short) -1, -1)));
    append(9, 0, 0);
    reopen();
    assertThat(append(7, 0, 1).outcome()).isEqualTo(Appended.Outcome.WRITTEN);
    assertThat(append(9, 0, 1).outcome()).isEqualTo(Appended.Outcome.WRITTEN);
    long began = got(log.newProducerId());
    assertThat(append(began, 0, 1).outcome())
        .as("one that begins now was not there to be forgotten")
        .isEqualTo(Appended.Outcome.OUT_OF_ORDER);
    assertThat(append(began, 0, 0).outcome()).isEqualTo(Appended.Outcome.WRITTEN);
  }

  @Test
  @DisplayName("a producer's id is never given twice")
  void ids() {
    Set<Long> given = new HashSet<>();
    for (int round = 0; round < 3; round++) {
      Flux.range(0, 1500)
          .flatMap(i -> log.newProducerId())
          .doOnNext(id -> assertThat(given.add(id)).isTrue())
          .blockLast(BOUND);
      reopen();
    }
    assertThat(given).hasSize(4500);
  }
}
