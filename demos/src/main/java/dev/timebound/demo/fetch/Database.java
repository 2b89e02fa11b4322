package dev.timebound.demo.fetch;

import java.time.Duration;

/** What keeps the log: its fault, and what can be seen of its statements. */
interface Database {
  /** Reads of partition 0 that would bring records wait from now on; all else goes on. */
  void stall();

  /** Undoes {@link #stall}. */
  void lift();

  /** Statements of that client that have been running for longer than that. */
  long running(Client client, Duration longerThan);

  /** Statements of that client that were cancelled, ever. */
  long cancelled(Client client);
}
