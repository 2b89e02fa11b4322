package dev.timebound.health;

import org.jspecify.annotations.Nullable;

/**
 * One request's hold on a member, counted in its load from the pick on, ended exactly once: the
 * first of {@link #succeeded}, {@link #failed}, {@link #cancelled} and the engine's own quarantine
 * wins and the rest do nothing.
 *
 * <p>{@link #waiting} and {@link #idle} come from one serialised place; {@link #progress} and the
 * ends may come from any thread. All are lock-free; waiting, idle and progress neither allocate nor
 * read a clock.
 */
public interface Claim<M extends Member> {
  M member();

  /**
   * The caller has asked for something and has nothing at hand. Idempotent while the wait lasts.
   */
  void waiting();

  /** The caller no longer waits: it has what it asked for, or asked for nothing. */
  void idle();

  /**
   * A part of this request's own response came in. Says nothing of whether the caller still waits.
   */
  void progress();

  /** True where this call ended the claim. */
  boolean succeeded();

  /** True where this call ended the claim. {@code cause} is kept for events and log lines only. */
  boolean failed(FailureKind kind, @Nullable Throwable cause);

  /** Neither success nor failure. True where this call ended the claim. */
  boolean cancelled();

  boolean isEnded();

  /**
   * Whether it is the one request that a cooldown lets through to see whether the member lives
   * again (HE-4): the adapter does for it what might hide that, such as connecting anew.
   */
  boolean isTrial();
}
