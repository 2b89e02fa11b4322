package dev.timebound.cas;

import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.util.context.Context;

/**
 * When the caller's deadline ends a call, what its attempts fail with a moment later is no one's,
 * and Reactor would log it at ERROR.
 */
final class Quiet {
  private static final Logger LOG = LoggerFactory.getLogger(CasRing.class);

  /** Reactor's own key. */
  private static final String DROPPED = "reactor.onErrorDropped.local";

  private static final Consumer<Throwable> AT_DEBUG =
      late -> LOG.debug("after the call has ended", late);

  private Quiet() {}

  /** A caller's own way with such errors stands. */
  static Context of(Context caller) {
    return caller.hasKey(DROPPED) ? caller : caller.put(DROPPED, AT_DEBUG);
  }
}
