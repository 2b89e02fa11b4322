package dev.timebound.demo.bigtable;

import java.util.List;
import org.reactivestreams.Publisher;

/**
 * A Bigtable client under test. Every variant is driven through this and nothing else, so that all
 * get the same load in the same way. No method blocks, save {@link #close}.
 */
public interface ReadClient extends AutoCloseable {

  /** Reads one row by its key; empty where there is none. */
  Publisher<DemoRow> point(String key);

  /**
   * Reads the rows from {@code from} (inclusive) to {@code to} (exclusive), at most {@code limit}
   * of them (0: all). The reader's demand is the client's demand.
   */
  Publisher<DemoRow> scan(String from, String to, long limit);

  /** What the client itself knows of its channels, in a few words; empty where it tells nothing. */
  String channels();

  /** What has changed among its channels since this was last asked, a line each. */
  default List<String> news() {
    return List.of();
  }

  /** How many channels it has taken out of service so far; 0 where it does no such thing. */
  default int quarantined() {
    return 0;
  }

  /** How many it has put back so far. */
  default int restored() {
    return 0;
  }

  @Override
  void close();
}
