package dev.timebound.deadline;

import io.micrometer.context.ThreadLocalAccessor;
import org.jspecify.annotations.Nullable;

/**
 * Tells Micrometer's context-propagation of {@link DeadlineScope}'s thread local (DL-7). Found by
 * the ServiceLoader, so there is nothing to do; a registry of one's own takes it by {@code
 * registerThreadLocalAccessor}. The only class that needs that library.
 */
public final class DeadlineThreadLocalAccessor implements ThreadLocalAccessor<Deadline> {
  /** For the ServiceLoader, and for a registry of one's own. */
  public DeadlineThreadLocalAccessor() {}

  /** The key of the Reactor Context under which {@link Deadlines} finds the deadline. */
  @Override
  public Object key() {
    return Deadline.class;
  }

  @Override
  public @Nullable Deadline getValue() {
    return DeadlineScope.get();
  }

  @Override
  public void setValue(Deadline deadline) {
    DeadlineScope.set(deadline);
  }

  @Override
  public void setValue() {
    DeadlineScope.set(null);
  }
}
