package dev.timebound.fetch.kit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The store under test, and short ways to ask it. */
abstract class StoreContractParts {
  StoreUnderTest tested;

  /** A store to test; closed after each test. */
  protected abstract StoreUnderTest open();

  @BeforeEach
  final void openIt() {
    tested = open();
  }

  @AfterEach
  final void nothingIsLeft() throws InterruptedException {
    try {
      long end = System.nanoTime() + tested.longest().toNanos();
      while (tested.held() != 0 && System.nanoTime() - end < 0) {
        TimeUnit.MILLISECONDS.sleep(5);
      }
      assertThat(tested.held()).as("held by reads that are over").isZero();
    } finally {
      tested.close();
    }
  }

  static ByteBuffer bytes(int value, int size) {
    ByteBuffer bytes = ByteBuffer.allocate(size);
    while (bytes.hasRemaining()) {
      bytes.put((byte) value);
    }
    return bytes.flip();
  }

  /** Four batches of 3 records and 100 bytes: offsets 0-2, 3-5, 6-8, 9-11. */
  TopicPartition four() {
    TopicPartition partition = tested.newPartition();
    for (int i = 0; i < 4; i++) {
      assertThat(tested.append(partition, bytes(i, 100), 3, 1000 + i)).isEqualTo(3L * i);
    }
    return partition;
  }

  static ReadSpec from(long offset, int maxBytes, boolean firstOfAnySize) {
    return new ReadSpec(offset, maxBytes, firstOfAnySize, Isolation.READ_UNCOMMITTED);
  }

  List<RecordBatch> read(TopicPartition partition, ReadSpec spec) {
    return read(partition, spec, Deadline.after(tested.longest()));
  }

  List<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    return got(
        Flux.from(
                Deadlines.<RecordBatch>within(tested.longest())
                    .apply(tested.store().read(partition, spec, budget)))
            .collectList());
  }

  <T> T got(Mono<T> mono) {
    return Objects.requireNonNull(
        mono.block(tested.longest()), "the store's Mono was empty (expected: one answer)");
  }

  static List<Long> bases(List<RecordBatch> batches) {
    return batches.stream().map(RecordBatch::baseOffset).toList();
  }

  Offsets offsets(TopicPartition partition) {
    return got(tested.store().offsets(partition));
  }
}
