package dev.timebound.samples.kafka.log;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.samples.kafka.log.ProducerState.Verdict;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ProducerStateTest {
  private @Nullable ProducerState state;
  private long end;
  private boolean forgotten;

  private static ProducedBatch batch(int epoch, int sequence, int records) {
    return new ProducedBatch(ByteBuffer.allocate(61), records, -1, 7, (short) epoch, sequence);
  }

  /** Decides, and writes what is next. */
  private String write(int epoch, int sequence, int records) {
    ProducedBatch batch = batch(epoch, sequence, records);
    ProducerState.Decision decision = ProducerState.decide(state, batch, forgotten);
    if (decision.verdict() == Verdict.NEXT) {
      state = ProducerState.after(state, batch, end);
      end += records;
    }
    return decision.verdict() + " " + decision.duplicateOf();
  }

  @Test
  @DisplayName("an unknown producer begins at 0: what it sent before a later batch is to come yet")
  void unknown() {
    assertThat(write(0, 1, 1)).isEqualTo("OUT_OF_ORDER -1");
    assertThat(write(0, 0, 1)).isEqualTo("NEXT -1");
    assertThat(write(0, 1, 1)).isEqualTo("NEXT -1");
  }

  @Test
  @DisplayName("of one that may have been forgotten any batch is the next one")
  void mayBeForgotten() {
    forgotten = true;
    assertThat(write(3, 1234, 10)).isEqualTo("NEXT -1");
    assertThat(write(3, 1244, 1)).isEqualTo("NEXT -1");
  }

  @Test
  @DisplayName("each of the last five batches sent again gets its own first offset")
  void duplicates() {
    for (int i = 0; i < 6; i++) {
      assertThat(write(0, 10 * i, 10)).isEqualTo("NEXT -1");
    }
    for (int i = 1; i < 6; i++) {
      assertThat(write(0, 10 * i, 10)).isEqualTo("DUPLICATE " + 10 * i);
    }
    assertThat(write(0, 0, 10)).as("the sixth last is forgotten").isEqualTo("OUT_OF_ORDER -1");
    assertThat(write(0, 50, 5)).as("a part of one").isEqualTo("OUT_OF_ORDER -1");
  }

  @Test
  @DisplayName("a gap is out of order")
  void gap() {
    write(0, 0, 10);
    assertThat(write(0, 11, 1)).isEqualTo("OUT_OF_ORDER -1");
    assertThat(write(0, 10, 1)).isEqualTo("NEXT -1");
  }

  @Test
  @DisplayName("a younger instance begins at 0, and the older one is fenced from then on")
  void epochs() {
    write(0, 0, 10);
    assertThat(write(1, 10, 1)).isEqualTo("OUT_OF_ORDER -1");
    assertThat(write(1, 0, 1)).isEqualTo("NEXT -1");
    assertThat(write(0, 10, 1)).isEqualTo("FENCED -1");
    assertThat(write(1, 1, 1)).isEqualTo("NEXT -1");
  }

  @Test
  @DisplayName("after the largest int comes 0")
  void wraps() {
    forgotten = true;
    write(0, Integer.MAX_VALUE - 1, 4);
    assertThat(write(0, 2, 1)).isEqualTo("NEXT -1");
    assertThat(write(0, Integer.MAX_VALUE - 1, 4)).isEqualTo("DUPLICATE 0");
  }
}
