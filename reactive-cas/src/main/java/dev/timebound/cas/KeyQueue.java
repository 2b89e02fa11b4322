package dev.timebound.cas;

import dev.timebound.cas.KeyRounds.Next;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Sinks;

/**
 * Keys that wait for their shard to be asked. What goes to one shard while it is being asked is
 * gathered, and goes together then: keys of a shard that is out go different ways on a rendezvous
 * ring, and would end up in a request each. One loop asks, so that rounds that fail at once do not
 * nest, however many shards there are. Thread-safe.
 *
 * @param <R> what is told of a key
 */
final class KeyQueue<R> {
  /** Requests, or sets of them, of one shard at a time. */
  private static final int OF_ONE_SHARD = 2;

  private static final int AT_ONCE = 64;

  /** Asks a shard for some keys. */
  interface Ask<R> {
    Flux<R> apply(Next next, List<Digest> keys);
  }

  private final Ask<R> ask;
  private final Sinks.Many<Flux<R>> asked = Sinks.unsafe().many().unicast().onBackpressureBuffer();
  private final AtomicInteger work = new AtomicInteger();

  // guarded by this
  private final Map<Next, List<Digest>> waiting = new LinkedHashMap<>();
  private final Map<Shard, Integer> running = new HashMap<>();
  private int total;

  KeyQueue(Ask<R> ask) {
    this.ask = ask;
  }

  /** To be followed by {@link #drain}. */
  synchronized void add(Next next, Digest key) {
    waiting.computeIfAbsent(next, any -> new ArrayList<>()).add(key);
  }

  /** What is told of all keys; ends once none waits and no shard is being asked. */
  Flux<R> results() {
    return asked
        .asFlux()
        .flatMap(results -> results, Integer.MAX_VALUE)
        .doOnSubscribe(s -> drain());
  }

  /** Asks those shards that may be asked now; ends the results where there is nothing left. */
  void drain() {
    if (work.getAndIncrement() != 0) {
      return;
    }
    int seen = 1;
    do {
      Map.Entry<Next, List<Digest>> next;
      while ((next = take()) != null) {
        Shard shard = next.getKey().shard();
        var unused =
            asked.tryEmitNext(
                ask.apply(next.getKey(), next.getValue()).doOnComplete(() -> ended(shard)));
      }
      if (isOver()) {
        var unused = asked.tryEmitComplete();
      }
      seen = work.addAndGet(-seen);
    } while (seen != 0);
  }

  private synchronized Map.@Nullable Entry<Next, List<Digest>> take() {
    if (total >= AT_ONCE) {
      return null;
    }
    for (Iterator<Map.Entry<Next, List<Digest>>> all = waiting.entrySet().iterator();
        all.hasNext(); ) {
      Map.Entry<Next, List<Digest>> each = all.next();
      Shard shard = each.getKey().shard();
      if (running.getOrDefault(shard, 0) < OF_ONE_SHARD) {
        all.remove();
        running.merge(shard, 1, Integer::sum);
        total++;
        return each;
      }
    }
    return null;
  }

  private void ended(Shard shard) {
    synchronized (this) {
      running.merge(shard, -1, Integer::sum);
      total--;
    }
    drain();
  }

  private synchronized boolean isOver() {
    return total == 0 && waiting.isEmpty();
  }
}
