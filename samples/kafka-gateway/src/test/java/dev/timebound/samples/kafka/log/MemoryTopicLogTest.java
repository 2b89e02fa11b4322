package dev.timebound.samples.kafka.log;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;

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

  private List<RecordBatch> read() {
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
