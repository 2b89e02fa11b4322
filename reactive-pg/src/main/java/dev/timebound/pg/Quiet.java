package dev.timebound.pg;

import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.util.context.Context;

/**
 * What is asked of a connection by nobody's read has no caller's Context, and an error that comes
 * after it was given up is no one's: Reactor would log it at ERROR, with its stack, for every
 * socket that is closed on purpose.
 */
final class Quiet {
  private static final Logger LOG = LoggerFactory.getLogger(ReaderPool.class);

  static final Context CONTEXT =
      Context.of(
          "reactor.onErrorDropped.local",
          (Consumer<Throwable>) late -> LOG.debug("after it was given up", late));

  private Quiet() {}

  /** For a caller's own statement: his Context, and that. */
  static Context in(Context callers) {
    return callers.putAll(CONTEXT.readOnly());
  }
}
