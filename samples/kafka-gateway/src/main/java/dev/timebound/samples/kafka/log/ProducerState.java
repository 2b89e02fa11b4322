package dev.timebound.samples.kafka.log;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a partition remembers of one idempotent producer: its epoch and its last batches. A state
 * machine without a clock or a lock; immutable.
 *
 * @param epoch of the producer, {@code >= 0}
 * @param written the last batches, oldest first, at most {@value #REMEMBERED}, at least one
 */
public record ProducerState(short epoch, List<Written> written) {
  /**
   * An idempotent client has at most five requests under way, so that of five batches the one sent
   * again is always among those remembered.
   */
  static final int REMEMBERED = 5;

  /** One batch: its sequence numbers, both inclusive, and where it was written. */
  public record Written(int firstSequence, int lastSequence, long baseOffset) {}

  /** What is to be done with a batch. */
  public enum Verdict {
    /** It is the next one: write it. */
    NEXT,
    /** It was written before: answer its first offset. */
    DUPLICATE,
    /** A batch before it is missing, or it is older than what is remembered. */
    OUT_OF_ORDER,
    /** A younger instance of the producer took over. */
    FENCED
  }

  /**
   * A verdict, with what its answer needs.
   *
   * @param verdict what to do
   * @param duplicateOf where a {@link Verdict#DUPLICATE} was written; −1 otherwise
   */
  public record Decision(Verdict verdict, long duplicateOf) {
    private static final Decision NEXT = new Decision(Verdict.NEXT, -1);
    private static final Decision OUT_OF_ORDER = new Decision(Verdict.OUT_OF_ORDER, -1);
    private static final Decision FENCED = new Decision(Verdict.FENCED, -1);
  }

  public ProducerState {
    written = List.copyOf(written);
  }

  /**
   * What is to be done with a batch of an idempotent producer.
   *
   * <p>A producer that the partition knows nothing of begins at 0: a batch further on has others
   * before it, of which the first failed and will be sent again. Only where what it wrote before
   * may have been forgotten since is any batch the next one.
   *
   * @param forgotten whether the partition may have known a producer that it does not know now
   */
  static Decision decide(@Nullable ProducerState state, ProducedBatch batch, boolean forgotten) {
    if (state == null) {
      return forgotten || batch.baseSequence() == 0 ? Decision.NEXT : Decision.OUT_OF_ORDER;
    }
    return state.decide(batch.producerEpoch(), batch.baseSequence(), batch.lastSequence());
  }

  /** Once a batch, which {@link #decide} called the next one, was written. */
  static ProducerState after(@Nullable ProducerState state, ProducedBatch batch, long baseOffset) {
    Written written = new Written(batch.baseSequence(), batch.lastSequence(), baseOffset);
    return state == null
        ? first(batch.producerEpoch(), written)
        : state.with(batch.producerEpoch(), written);
  }

  private Decision decide(short batchEpoch, int firstSequence, int lastSequence) {
    if (batchEpoch < epoch) {
      return Decision.FENCED;
    }
    if (batchEpoch > epoch) {
      return firstSequence == 0 ? Decision.NEXT : Decision.OUT_OF_ORDER;
    }
    for (Written batch : written) {
      if (batch.firstSequence == firstSequence && batch.lastSequence == lastSequence) {
        return new Decision(Verdict.DUPLICATE, batch.baseOffset);
      }
    }
    int last = written.get(written.size() - 1).lastSequence;
    return firstSequence == after(last, 1) ? Decision.NEXT : Decision.OUT_OF_ORDER;
  }

  private static ProducerState first(short epoch, Written batch) {
    return new ProducerState(epoch, List.of(batch));
  }

  private ProducerState with(short batchEpoch, Written batch) {
    if (batchEpoch != epoch) {
      return first(batchEpoch, batch);
    }
    List<Written> all = new ArrayList<>(written);
    if (all.size() == REMEMBERED) {
      all.remove(0);
    }
    all.add(batch);
    return new ProducerState(epoch, all);
  }

  /** The sequence number that many records on; after the largest int comes 0. */
  static int after(int sequence, int records) {
    return (int) (((long) sequence + records) & Integer.MAX_VALUE);
  }
}
