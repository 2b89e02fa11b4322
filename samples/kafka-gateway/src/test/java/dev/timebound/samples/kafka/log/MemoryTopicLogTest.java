package dev.timebound.samples.kafka.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;

@NullUnmarked // what is asked for is there
class MemoryTopicLogTest {
  private static final TopicPartition PARTITION = new TopicPartition("t", 0);
  private static final int HEAD = 61;

  private final MemoryTopicLog log = new MemoryTopicLog();

  @ParameterizedTest
  @ValueSource(longs = {-1, 7})
  @DisplayName("batches of any size come back as they were written, outside the heap")
  void kept(long producer) {
    log.create("t", 1).block();
    Random random = new Random(1);
    List<byte[]> written =
        random.ints(200, HEAD, 40_000).mapToObj(size -> bytes(random, size)).toList();
    byte[] large = bytes(random, 700_000);
    Flux.fromIterable(written)
        .concatWithValues(large)
        .index()
        .concatMap(
            each ->
                log.append(
                    PARTITION,
                    new ProducedBatch(
                        ByteBuffer.wrap(each.getT2().clone()),
                        1,
                        -1,
                        producer,
                        (short) 0,
                        each.getT1().intValue())))
        .blockLast();

    List<RecordBatch> read = read();
    assertThat(read).hasSize(201).allMatch(batch -> batch.bytes().isDirect());
    for (int i = 0; i < read.size(); i++) {
      byte[] expected = i < 200 ? written.get(i) : large;
      ByteBuffer wanted = ByteBuffer.wrap(expected).putLong(0, i).putInt(12, -1);
      assertThat(read.get(i).bytes()).isEqualTo(wanted);
    }
  }

  @Test
  @DisplayName("what the producer does with its bytes later changes nothing")
  void copied() {
    log.create("t", 1).block();
    byte[] bytes = bytes(new Random(1), 100);
    log.append(PARTITION, new ProducedBatch(ByteBuffer.wrap(bytes), 1, -1, -1, (short) -1, -1))
        .block();
    byte last = bytes[99];
    bytes[99]++;
    assertThat(read().get(0).bytes().get(99)).isEqualTo(last);
  }

  private static ProducedBatch of(long producer, int sequence, int size) {
    return new ProducedBatch(ByteBuffer.allocate(size), 1, -1, producer, (short) 0, sequence);
  }

  @Test
  @DisplayName("a full log refuses what has no room, again if it is sent again, and is read on")
  void full() {
    MemoryTopicLog small = new MemoryTopicLog(1_000_000);
    small.create("t", 1).block();
    long producer = small.newProducerId().block();
    for (int i = 0; i < 3; i++) {
      assertThat(small.append(PARTITION, of(producer, i, 300_000)).block())
          .isEqualTo(Appended.written(i));
    }
    for (int attempt = 0; attempt < 2; attempt++) {
      assertThat(small.append(PARTITION, of(producer, 3, 300_000)).block().outcome())
          .isEqualTo(Appended.Outcome.NO_ROOM);
    }
    assertThat(small.append(PARTITION, of(-1, -1, 300_000)).block().outcome())
        .isEqualTo(Appended.Outcome.NO_ROOM);
    assertThat(small.store().offsets(PARTITION).block().highWatermark()).isEqualTo(3);
    assertThat(read(small)).hasSize(3);
    assertThat(small.append(PARTITION, of(producer, 3, 100)).block())
        .as("there is room for a smaller one")
        .isEqualTo(Appended.written(3));
    assertThatThrownBy(() -> new MemoryTopicLog(0)).hasMessage("maxBytes: 0 (expected: >= 1)");
  }

  @Test
  @DisplayName("memory that the process has not is no error but of the batch that wants it")
  void takenByOthers() {
    DirectMemory.Room room = new DirectMemory.Room(Long.MAX_VALUE);
    List<ByteBuffer> taken = new ArrayList<>();
    assertThatThrownBy(
            () -> {
              for (; ; ) {
                taken.add(room.take(Integer.MAX_VALUE - 8));
              }
            })
        .isInstanceOf(DirectMemory.FullException.class)
        .hasCauseInstanceOf(OutOfMemoryError.class);
  }

  @Test
  @DisplayName("a producer that is not known begins at 0, unless it may have been forgotten")
  void unknownProducer() {
    log.create("t", 1).block();
    long first = log.newProducerId().block();
    assertThat(log.append(PARTITION, of(first, 1, HEAD)).block().outcome())
        .isEqualTo(Appended.Outcome.OUT_OF_ORDER);
    assertThat(log.append(PARTITION, of(first, 0, HEAD)).block()).isEqualTo(Appended.written(0));
    assertThat(log.append(PARTITION, of(first - 1, 9, HEAD)).block())
        .as("of a process before this one")
        .isEqualTo(Appended.written(1));
    for (int i = 1; i <= 1_000; i++) {
      log.append(PARTITION, of(first + i, 0, HEAD)).block();
    }
    assertThat(log.append(PARTITION, of(first, 1, HEAD)).block().outcome())
        .as("forgotten since")
        .isEqualTo(Appended.Outcome.WRITTEN);
  }

  private List<RecordBatch> read() {
    return read(log);
  }

  private static List<RecordBatch> read(MemoryTopicLog log) {
    ReadSpec all = new ReadSpec(0, Integer.MAX_VALUE, true, Isolation.READ_UNCOMMITTED);
    Deadline budget = Deadline.after(Duration.ofSeconds(5), Schedulers.parallel());
    return log.store().read(PARTITION, all, budget).toStream().toList();
  }

  private static byte[] bytes(Random random, int size) {
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    return bytes;
  }
}
