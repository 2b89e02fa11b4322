package dev.timebound.demo.bigtable;

import org.jspecify.annotations.Nullable;

/** The network between the client and the server, as far as a stall needs it. */
interface Line {

  /** Connections open now. */
  int open();

  /**
   * Stalls the established connection that carried the most bytes in the last second: its sockets
   * stay open and nothing is passed on.
   *
   * @return the stalled one; null where none carried anything, and so none was stalled
   */
  @Nullable Stalled stallBusiest();

  /** A connection that was stalled. */
  interface Stalled {
    /** Which it is, and what it carried before. */
    String what();

    /** Whether it is still open and stalled. */
    boolean holds();

    /** Ends the stall; what was held is passed on. */
    void thaw();
  }
}
