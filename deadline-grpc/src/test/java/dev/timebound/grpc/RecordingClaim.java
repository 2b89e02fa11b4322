package dev.timebound.grpc;

import dev.timebound.health.Claim;
import dev.timebound.health.FailureKind;
import dev.timebound.health.Member;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Keeps what the caller's side said of its waits, and that it said it from one place at a time. */
final class RecordingClaim<M extends Member> implements Claim<M> {
  final List<String> log = new CopyOnWriteArrayList<>();
  volatile boolean overlapped;
  volatile boolean waits;
  volatile boolean ended;
  private final AtomicInteger inside = new AtomicInteger();

  /** An attempt whose headers have gone out, on this claim. */
  static RecordingClaim<?> on(CallAttempt attempt) {
    RecordingClaim<PooledChannel> claim = new RecordingClaim<>();
    attempt.bind(claim, () -> {});
    attempt.headersSent();
    return claim;
  }

  @Override
  public M member() {
    throw new UnsupportedOperationException();
  }

  @Override
  public void waiting() {
    say("waiting");
    waits = true;
  }

  @Override
  public void idle() {
    say("idle");
    waits = false;
  }

  private void say(String what) {
    if (inside.getAndIncrement() != 0) {
      overlapped = true;
    }
    log.add(what);
    Thread.onSpinWait();
    inside.decrementAndGet();
  }

  @Override
  public void progress() {}

  @Override
  public boolean succeeded() {
    return false;
  }

  @Override
  public boolean failed(FailureKind kind, @Nullable Throwable cause) {
    return false;
  }

  @Override
  public boolean cancelled() {
    return false;
  }

  @Override
  public boolean isEnded() {
    return ended;
  }

  @Override
  public boolean isTrial() {
    return false;
  }
}
