package dev.timebound.demo.pg;

import java.util.Map;
import reactor.core.publisher.Mono;

/**
 * A way to reach a primary and its standby. Every variant is driven through this and nothing else,
 * so that all get the same load in the same way. No method blocks, save {@link #close}.
 */
public interface ReadWriteClient extends AutoCloseable {

  /** One read, in a read-only transaction of its own. */
  Mono<Answer> read(Ask ask);

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
