package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.util.List;
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

  /** The same for each set of parameters by itself, where it has several; else it alone. */
  default List<Execution> each() {
    return List.of(this);
  }

  /** Whether its rows are fetched in portions, as the caller takes them. */
  boolean isStreamed();
}
