package dev.timebound.deadline;

import org.jspecify.annotations.Nullable;

/**
 * A thread's deadline, for code that blocks and for what it calls (DL-7). Where Micrometer's
 * context-propagation is on the class path, Reactor's {@code contextCapture()} carries it into the
 * Context and, with that, back into the thread of a {@code handle} or a {@code tap} ({@link
 * DeadlineThreadLocalAccessor}).
 *
 * <pre>{@code
 * try (DeadlineScope scope = DeadlineScope.open(deadline)) {
 *   return client.read(id).transform(Deadlines.within(ofMillis(500))).contextCapture().block();
 * }
 * }</pre>
 *
 * <p>What is captured replaces the deadline that the Context has from further downstream. So {@code
 * contextCapture()} stands downstream of all bounds, where there is none yet.
 *
 * <p>A scope is closed by the thread that opened it, in reverse order; to close it again does
 * nothing.
 */
public final class DeadlineScope implements AutoCloseable {
  private static final ThreadLocal<@Nullable Deadline> CURRENT = new ThreadLocal<>();

  private final @Nullable Deadline before;
  private boolean closed;

  private DeadlineScope(@Nullable Deadline before) {
    this.before = before;
  }

  /** This thread's deadline; {@link Deadline#none()} where there is none. */
  public static Deadline current() {
    Deadline present = get();
    return present == null ? Deadline.none() : present;
  }

  /** Gives this thread the lesser of the deadline and the one it has, until the scope is closed. */
  public static DeadlineScope open(Deadline deadline) {
    DeadlineScope scope = new DeadlineScope(get());
    set(Deadlines.lesser(current(), deadline));
    return scope;
  }

  /** Gives the thread back the deadline it had before. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      set(before);
    }
  }

  static @Nullable Deadline get() {
    return CURRENT.get();
  }

  static void set(@Nullable Deadline deadline) {
    if (deadline == null || deadline.isNone()) {
      CURRENT.remove();
    } else {
      CURRENT.set(deadline);
    }
  }
}
