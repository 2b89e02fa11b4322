package dev.timebound.demo.pg;

import io.r2dbc.spi.Connection;
import java.util.Map;
import java.util.function.Function;
import reactor.core.publisher.Mono;

/**
 * A way to reach a primary and its standby. Every variant is driven through this and nothing else,
 * so that all get the same load in the same way. No method blocks, save {@link #close}.
 */
public interface ReadWriteClient extends AutoCloseable {

  /**
   * Runs {@code work} in a read-only transaction of its own, on the reader or where it falls to.
   */
  <T> Mono<T> reading(Function<Connection, Mono<T>> work);

  /** One read of the demo's table. */
  default Mono<Answer> read(Ask ask) {
    return reading(c -> Table.read(c, ask));
  }

  /** One write, on the writer; completes when it is committed. */
  Mono<Void> write(int id, long pulse);

  /** Why reads went to the writer, and how often so far. */
  Map<String, Long> writerReasons();

  /** The writer's pool, for the account of who waits for it. */
  WriterPool writer();

  /** The pool's own account of the reader's connections, in a few words. */
  String readers();

  @Override
  void close();
}
