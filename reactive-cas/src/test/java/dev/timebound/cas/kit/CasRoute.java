package dev.timebound.cas.kit;

import dev.timebound.cas.Digest;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What one method of a {@link ScriptedCas} does. A call takes the first of: the oldest script of
 * {@link #next}, what {@link #answer} says, the script {@link #forDigest} of the first of its blobs
 * that has one, the script of {@link #always}; where there is none of them it gets what is correct.
 *
 * <p>Thread-safe; changes hold for calls whose (first) request comes in after them.
 */
public final class CasRoute {
  private final CasMethod method;
  private final Supplier<List<CasCall>> allCalls;
  private final Deque<CasScript> queue = new ArrayDeque<>();
  private final Map<Digest, CasScript> byDigest = new HashMap<>();
  private @Nullable Function<CasCall, @Nullable CasScript> function;
  private @Nullable CasScript always;

  CasRoute(CasMethod method, Supplier<List<CasCall>> allCalls) {
    this.method = method;
    this.allCalls = allCalls;
  }

  /** The next calls take these, one each, in order. */
  public synchronized CasRoute next(CasScript... scripts) {
    queue.addAll(Arrays.asList(scripts));
    return this;
  }

  /**
   * Calls that find no script queued are answered by that function, null for none: by number,
   * header, offset, whatever a {@link CasCall} tells. What it throws becomes status INTERNAL.
   */
  public synchronized CasRoute answer(Function<CasCall, @Nullable CasScript> script) {
    function = Objects.requireNonNull(script);
    return this;
  }

  /** Calls about that blob take this script. */
  public synchronized CasRoute forDigest(Digest digest, CasScript script) {
    byDigest.put(digest, Objects.requireNonNull(script));
    return this;
  }

  /** Calls that find nothing else take this script. */
  public synchronized CasRoute always(CasScript script) {
    always = Objects.requireNonNull(script);
    return this;
  }

  /** Forgets every script: what is correct from here on. */
  public synchronized CasRoute heal() {
    queue.clear();
    byDigest.clear();
    function = null;
    always = null;
    return this;
  }

  /** The calls of this method, in the order in which they came. */
  public List<CasCall> calls() {
    return allCalls.get().stream().filter(call -> call.method() == method).toList();
  }

  /** Waits, for 30 s at most, until the nth call of this method (from 1) has come, and gives it. */
  public CasCall awaitCall(int n) {
    Wait.until(
        method + " was called " + n + " times",
        () -> calls().size() >= n,
        () -> "the calls are " + calls());
    return calls().get(n - 1);
  }

  CasScript scriptFor(CasCall call) {
    Function<CasCall, @Nullable CasScript> asked;
    synchronized (this) {
      CasScript queued = queue.poll();
      if (queued != null) {
        return queued;
      }
      asked = function;
    }
    CasScript answered = asked == null ? null : asked.apply(call);
    if (answered != null) {
      return answered;
    }
    synchronized (this) {
      if (!byDigest.isEmpty()) {
        for (Digest digest : call.digests()) {
          CasScript own = byDigest.get(digest);
          if (own != null) {
            return own;
          }
        }
      }
      return always != null ? always : CasScript.correct();
    }
  }
}
