package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import org.reactivestreams.Publisher;

/** What a caller wants executed, kept so that it can be executed elsewhere too. */
interface Execution {
  /** Executes it there, once for each subscription. */
  Publisher<? extends Result> on(Connection connection);

  /** Whether it brings one result, so that a result that has brought no row yet may be replaced. */
  boolean isSingle();

  /**
   * Whether the driver sends it when its one result is consumed, and not before: it does so where
   * parameters are bound, once.
   */
  default boolean isSentLate() {
    return false;
  }

  /** Whether its rows are fetched in portions, as the caller takes them. */
  boolean isStreamed();
}
