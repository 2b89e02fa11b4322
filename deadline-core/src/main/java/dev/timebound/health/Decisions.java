package dev.timebound.health;

import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The last 500 decisions of all groups. Lock-free; a reader sees each once, in order. */
final class Decisions {
  static final int KEPT = 500;

  private record Cell(long number, Decision decision) {}

  private final AtomicReferenceArray<@Nullable Cell> cells = new AtomicReferenceArray<>(KEPT);
  private final AtomicLong next = new AtomicLong();

  void add(Decision d) {
    put(next.getAndIncrement(), d);
  }

  void put(long number, Decision d) {
    // one that was overtaken by a whole round is older than what stands there
    cells.accumulateAndGet(
        (int) (number % KEPT),
        new Cell(number, d),
        (was, now) -> was != null && now != null && was.number > now.number ? was : now);
  }

  /** Oldest first. */
  List<Decision> last() {
    return IntStream.range(0, KEPT)
        .mapToObj(cells::get)
        .filter(Objects::nonNull)
        .sorted(Comparator.comparingLong(Cell::number))
        .map(Cell::decision)
        .toList();
  }
}
