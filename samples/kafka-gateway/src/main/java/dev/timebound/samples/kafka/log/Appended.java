package dev.timebound.samples.kafka.log;

/**
 * How an append ended.
 *
 * @param baseOffset of the batch, where it was written now or before; −1 where it was not
 */
public record Appended(Outcome outcome, long baseOffset) {
  /** What became of the batch. */
  public enum Outcome {
    WRITTEN,
    /** It was there already; nothing was written. */
    DUPLICATE,
    /** Refused: one of the producer's batches before it is missing. */
    OUT_OF_ORDER,
    /** Refused: a younger instance of the producer took over. */
    FENCED,
    /** Refused: the log is full. */
    NO_ROOM,
    /** Refused: there is no such topic, or no such partition of it. */
    UNKNOWN_PARTITION
  }

  static Appended written(long baseOffset) {
    return new Appended(Outcome.WRITTEN, baseOffset);
  }

  /** Of a batch that is not to be written. */
  static Appended of(ProducerState.Decision decision) {
    return switch (decision.verdict()) {
      case DUPLICATE -> new Appended(Outcome.DUPLICATE, decision.duplicateOf());
      case OUT_OF_ORDER -> refused(Outcome.OUT_OF_ORDER);
      case FENCED -> refused(Outcome.FENCED);
      case NEXT -> throw new IllegalArgumentException("it is to be written");
    };
  }

  static Appended refused(Outcome outcome) {
    return new Appended(outcome, -1);
  }
}
