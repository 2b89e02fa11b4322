package dev.timebound.pg;

import io.netty.util.ReferenceCounted;
import io.r2dbc.postgresql.message.backend.BackendMessage;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Operators;
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

  /**
   * For a caller's own statement: his Context, and that. A connection that is closed on one thread
   * while another one hands on what was received drops the row in between, which nobody would
   * release.
   */
  static Context in(Context callers) {
    return callers
        .putAll(CONTEXT.readOnly())
        .put("reactor.onNextDropped.local", (Consumer<Object>) late -> dropped(late, callers));
  }

  private static void dropped(Object late, Context callers) {
    // what is the caller's is left alone; the driver drops some that it has released
    if (late instanceof BackendMessage && late instanceof ReferenceCounted message) {
      if (message.refCnt() > 0) {
        message.release();
      }
    } else {
      Operators.onNextDropped(late, callers);
    }
  }
}
