package dev.timebound.grpc;

/**
 * How many messages a stream asks for ahead of its consumer: bounded by bytes, so that a stream of
 * large messages holds few and a stream of small ones asks seldom.
 *
 * <p>The window begins at {@value #FIRST} and doubles with each refill, up to what the budget
 * allows for messages of the size seen lately, at least 1 and at most {@value #MOST}. A refill
 * comes when half of the window is used up. A larger message shrinks it at the next refill, which
 * is the next moment anything could be asked for at all.
 *
 * <p>Not thread-safe: it belongs to the drain loop. "Ahead" is what was asked for and not yet
 * handed downstream, whether it is under way or at hand.
 */
final class RequestWindow {
  /** Asking 32 at a time costs the least for small messages; beyond it nothing was gained. */
  static final int MOST = 32;

  /**
   * Two, not one: a response of one message, which a point read is, then ends with the one request
   * that began it. With one, its only message would cost a second trip to the event loop.
   */
  static final int FIRST = 2;

  /** Where the transport tells no sizes (the in-process one) a count has to do. */
  static final int UNSIZED = 4;

  private final long budget;
  private int window;

  /** A refill is due when no more than this is ahead. */
  private int low;

  RequestWindow(long budget) {
    this.budget = budget;
  }

  boolean isLow(long ahead) {
    return ahead <= low;
  }

  /**
   * How many more messages to ask for now; 0 where enough is ahead.
   *
   * @param ahead messages asked for and not yet handed downstream
   * @param size bytes of the largest message lately; 0 where not known
   */
  int refill(long ahead, long size) {
    int cap = size <= 0 ? UNSIZED : (int) Math.max(1, Math.min(MOST, budget / size));
    window = window == 0 ? FIRST : Math.min(cap, window * 2);
    low = (window - 1) / 2;
    return ahead <= low ? (int) (window - ahead) : 0;
  }
}
