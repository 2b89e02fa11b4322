package dev.timebound.fetch;

/**
 * How the partitions of a request share its time (FE-9). Under each a partition's share begins when
 * its turn does, and one that does not use its share passes the rest on.
 *
 * <pre>
 * max_wait 500 ms, read deadline 5.5 s; of three partitions the first one stalls, the others answer
 *
 * HALVING   |--- P0: half of what is left ---|P1|P2|
 *           0                             2.75s  answer
 * EQUAL     |-- P0: a third of it --|P1|P2|
 *           0                    1.83s  answer
 * PARALLEL  |P0 ...|       its cap is the deadline; it is left once the others brought min_bytes
 *           |P1|   |
 *           |P2|20 ms: answer
 *           0
 * </pre>
 */
public enum SharePolicy {
  /** One after the other, each half of what is left, the last all of it (FE-2). */
  HALVING {
    @Override
    long share(long left, int partitionsLeft) {
      return partitionsLeft == 1 ? left : left / 2;
    }
  },
  /** One after the other, each what is left divided by the partitions left. */
  EQUAL {
    @Override
    long share(long left, int partitionsLeft) {
      return left / partitionsLeft;
    }
  },
  /**
   * At the same time, at most 8, each with all that is left. Once {@code min_bytes} are in, the
   * reads under way get a grace, and what they have by then is answered.
   */
  PARALLEL {
    @Override
    long share(long left, int partitionsLeft) {
      return left;
    }
  };

  /**
   * @param left of the request's time, {@code > 0}
   * @param partitionsLeft of the round, this one included
   */
  abstract long share(long left, int partitionsLeft);
}
