package dev.timebound.cas;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import reactor.core.observability.DefaultSignalListener;

/**
 * How a caller's call ended, for who counts and who watches: told once, though its deadline's timer
 * may cancel it as it fails for that deadline itself. A cancel by the timer is told as what it is.
 */
abstract class CallEnd<T> extends DefaultSignalListener<T> {
  private final AtomicBoolean told = new AtomicBoolean();
  private final String operation;
  private final Deadline caller;

  CallEnd(String operation, Deadline caller) {
    this.operation = operation;
    this.caller = caller;
  }

  /**
   * @param failure null where it succeeded, or the caller cancelled it
   */
  abstract void tell(String outcome, @Nullable Throwable failure);

  @Override
  public void doOnComplete() {
    once(CasMeters.OK, null);
  }

  @Override
  public void doOnError(Throwable failure) {
    once(CasMeters.outcome(failure), failure);
  }

  @Override
  public void doOnCancel() {
    if (caller.isExpired()) {
      once(CasMeters.DEADLINE, new DeadlineExceededException(operation, caller));
    } else {
      once(CasMeters.CANCELLED, null);
    }
  }

  private void once(String outcome, @Nullable Throwable failure) {
    if (told.compareAndSet(false, true)) {
      tell(outcome, failure);
    }
  }
}
