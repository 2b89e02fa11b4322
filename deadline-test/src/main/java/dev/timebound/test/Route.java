package dev.timebound.test;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What one method of a {@link ScriptedBigtable} answers. A call takes the first of: the oldest
 * script of {@link #next(Script...)}, what {@link #answer(Function)} says, the script of {@link
 * #always(Script)}; where there is none of them, status INTERNAL that says so.
 *
 * <p>Thread-safe; changes hold for calls whose request comes in after them.
 */
public final class Route {
  private final String method;
  private final Supplier<List<ScriptedCall>> allCalls;
  private final Deque<Script> queue = new ArrayDeque<>();
  private @Nullable Function<ScriptedCall, @Nullable Script> function;
  private @Nullable Script always;

  Route(String method, Supplier<List<ScriptedCall>> allCalls) {
    this.method = method;
    this.allCalls = allCalls;
  }

  /** The next calls take these, one each, in order. */
  public synchronized Route next(Script... scripts) {
    queue.addAll(Arrays.asList(scripts));
    return this;
  }

  /**
   * Calls that find no script queued are answered by that function; null falls through to {@link
   * #always}. It runs on the server's event loop and may not block; what it throws becomes status
   * INTERNAL.
   */
  public synchronized Route answer(Function<ScriptedCall, @Nullable Script> script) {
    function = Objects.requireNonNull(script);
    return this;
  }

  /** Calls that find nothing else take this script. */
  public synchronized Route always(Script script) {
    always = Objects.requireNonNull(script);
    return this;
  }

  /** The calls of this method, in the order in which they came. */
  public List<ScriptedCall> calls() {
    return allCalls.get().stream().filter(call -> call.method().equals(method)).toList();
  }

  /** Waits, for 30 s at most, until the nth call of this method (from 1) has come, and gives it. */
  public ScriptedCall awaitCall(int n) {
    Await.until(
        method + " was called " + n + " times",
        () -> calls().size() >= n,
        () -> "the calls are " + calls());
    return calls().get(n - 1);
  }

  /** The script of a call; null where there is none. */
  @Nullable Script scriptFor(ScriptedCall call) {
    Function<ScriptedCall, @Nullable Script> asked;
    synchronized (this) {
      Script queued = queue.poll();
      if (queued != null) {
        return queued;
      }
      asked = function;
    }
    Script answered = asked == null ? null : asked.apply(call);
    if (answered != null) {
      return answered;
    }
    synchronized (this) {
      return always;
    }
  }
}
