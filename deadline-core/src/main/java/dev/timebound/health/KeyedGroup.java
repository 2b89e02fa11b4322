package dev.timebound.health;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.scheduler.Scheduler;

/*
 * The driver around a KeyHistory: reports are serialised by a queue that the calling thread drains,
 * one timer stands for the eldest penalty, and readers see a concurrent map of the same keys.
 */
final class KeyedGroup<K> implements KeyedHealth<K> {
  private static final Object WAKE = new Object();
  private static final Object CLOSE = new Object();

  private record Failed<K>(K key) {}

  private record Answered<K>(K key) {}

  private final String name;
  private final Clock clock;
  private final Telling telling;
  private final boolean dryRun;
  private final Scheduler.Worker time;
  private final KeyHistory<K> history;

  /** When each failed last, by a number. */
  private final Map<K, Long> known = new ConcurrentHashMap<>();

  private final Serial<Object> signals = new Serial<>(this::take);
  private volatile boolean closed;

  // the drain's own
  private long failures;
  private long wakeAt = Long.MAX_VALUE;
  private Disposable wakeTimer = Disposables.disposed();

  KeyedGroup(String name, long penaltyNanos, int most, EngineParts parts) {
    this.name = name;
    this.clock = parts.clock();
    this.telling = parts.telling();
    this.dryRun = parts.dryRun();
    this.time = parts.scheduler().createWorker();
    this.history = new KeyHistory<>(penaltyNanos, most);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void failed(K key, FailureKind kind) {
    Objects.requireNonNull(key, "key");
    if (kind == FailureKind.ANSWER) {
      answered(key);
    } else if (!closed) {
      signals.offer(new Failed<>(key));
    }
  }

  @Override
  public void answered(K key) {
    if (known.containsKey(key)) {
      signals.offer(new Answered<>(key));
    }
  }

  @Override
  public boolean isPenalised(K key) {
    return !dryRun && known.containsKey(key);
  }

  @Override
  public List<K> inOrder(List<K> keys) {
    if (dryRun || known.isEmpty() || keys.stream().noneMatch(known::containsKey)) {
      return keys;
    }
    List<K> order = new ArrayList<>(keys.size());
    List<K> last = new ArrayList<>();
    for (K key : keys) {
      (known.containsKey(key) ? last : order).add(key);
    }
    order.addAll(last);
    return order;
  }

  @Override
  public Set<K> penalised() {
    Set<K> keys = new LinkedHashSet<>();
    known.entrySet().stream()
        .map(e -> Map.entry(e.getKey(), e.getValue()))
        .sorted(Comparator.comparingLong(Map.Entry::getValue))
        .forEach(e -> keys.add(e.getKey()));
    return Collections.unmodifiableSet(keys);
  }

  @Override
  public int size() {
    return known.size();
  }

  /** As in {@code fetch{penalised=2}}. */
  @Override
  public String toString() {
    return name + "{penalised=" + size() + "}";
  }

  void close() {
    signals.offer(CLOSE);
  }

  @SuppressWarnings("unchecked") // only this class offers
  private void take(Object signal) {
    if (closed) {
      return;
    }
    if (signal == CLOSE) {
      closed = true;
      time.dispose();
      return;
    }
    long now = clock.now();
    if (signal == WAKE) {
      wakeAt = Long.MAX_VALUE;
      history.expired(now).forEach(known::remove);
    } else if (signal instanceof Failed<?> f) {
      K key = (K) f.key();
      known.put(key, ++failures);
      history.failed(key, now).forEach(known::remove);
      if (telling.counts() && !dryRun) {
        telling.penalised(name);
      }
    } else if (signal instanceof Answered<?> a) {
      K key = (K) a.key();
      history.answered(key);
      known.remove(key);
    }
    wakeBy(history.nextWake(), now);
  }

  /** A wake that comes too early, for a key that has failed again since, looks and waits on. */
  private void wakeBy(long at, long now) {
    if (at >= wakeAt) {
      return;
    }
    wakeTimer.dispose();
    wakeAt = at;
    try {
      wakeTimer =
          time.schedule(() -> signals.offer(WAKE), Math.max(0, at - now), TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException disposed) {
      wakeTimer = Disposables.disposed();
    }
  }
}
