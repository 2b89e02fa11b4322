package dev.timebound.deadline;

import java.util.ArrayList;
import java.util.List;

/**
 * What the steps of one request took, in order, bounded: the oldest are summed in one entry (DL-5).
 * The latest are kept one by one, because they are what the request died of.
 */
final class Ledger {
  static final int CAPACITY = 16;

  /** A ring of the latest; one place of the capacity is for the sum of the older ones. */
  private final LedgerEntry[] latest = new LedgerEntry[CAPACITY - 1];

  private long charged;
  private long summed;

  synchronized void add(String step, long nanos) {
    int place = (int) (charged++ % latest.length);
    LedgerEntry oldest = latest[place];
    if (oldest != null) {
      long sum = summed + oldest.nanos();
      summed = sum < 0 ? Long.MAX_VALUE : sum;
    }
    latest[place] = new LedgerEntry(step, nanos);
  }

  synchronized List<LedgerEntry> entries() {
    List<LedgerEntry> entries = new ArrayList<>(CAPACITY);
    long older = charged - latest.length;
    if (older > 0) {
      entries.add(new LedgerEntry("(" + older + " earlier)", summed));
    }
    for (long i = Math.max(0, older); i < charged; i++) {
      entries.add(latest[(int) (i % latest.length)]);
    }
    return List.copyOf(entries);
  }
}
