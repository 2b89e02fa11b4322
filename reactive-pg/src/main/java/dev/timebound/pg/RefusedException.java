package dev.timebound.pg;

import org.jspecify.annotations.Nullable;

/** A reader cannot serve this read, and why; the caller never sees it. */
final class RefusedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final RouteReason reason;

  RefusedException(RouteReason reason, String message, @Nullable Throwable cause) {
    super(message, cause, false, false);
    this.reason = reason;
  }

  static RefusedException of(RouteReason reason, Throwable cause) {
    return new RefusedException(reason, reason.tag(), cause);
  }

  /** An error that came in place of a result, as the refusal that it is where it is one. */
  static Throwable inPlaceOf(Throwable e, Execution what) {
    if (e instanceof UnprovedException || e instanceof RefusedException || !what.isSingle()) {
      return e;
    }
    RouteReason reason = SqlStates.failsOver(e);
    return reason == null ? e : of(reason, e);
  }

  RouteReason reason() {
    return reason;
  }
}
