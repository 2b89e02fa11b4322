package dev.timebound.fetch;

import java.util.Objects;

/**
 * Ends turns that run at the same time for the others' sake (FE-9): once min_bytes are in they are
 * cut, and what they reserved is free for others after as long a time. Of one thread.
 */
final class Cuts {
  private final RequestPartitions partitions;
  private final LongPoll poll;
  private final ByteBudget bytes;

  /** Some partition could not begin for what others have reserved. */
  private boolean waitsForBytes;

  Cuts(RequestPartitions partitions, LongPoll poll, ByteBudget bytes) {
    this.partitions = partitions;
    this.poll = poll;
    this.bytes = bytes;
  }

  /** A partition cannot begin now for what others have reserved. */
  void waitsForBytes() {
    waitsForBytes = true;
  }

  void apply(long now) {
    if (!poll.together()) {
      return;
    }
    poll.judge(now);
    for (int i = partitions.nextRunning(0); i >= 0; i = partitions.nextRunning(i + 1)) {
      PartitionTurn turn = turn(i);
      if (now >= cutAt(turn)) {
        turn.cut();
      } else if (now >= lapsesAt(turn)) {
        // What it held the others up by is the grace that it would have later.
        turn.graceSpent = waitsForBytes || partitions.anyBlocked();
        bytes.lapse(turn.task.reservation());
      }
    }
    waitsForBytes = false;
  }

  /** When {@link #apply} has something to do by time alone; Long.MAX_VALUE: never. */
  long next() {
    long at = Long.MAX_VALUE;
    if (poll.together()) {
      for (int i = partitions.nextRunning(0); i >= 0; i = partitions.nextRunning(i + 1)) {
        PartitionTurn turn = turn(i);
        at = Math.min(at, Math.min(cutAt(turn), lapsesAt(turn)));
      }
    }
    return at;
  }

  private long cutAt(PartitionTurn turn) {
    boolean heldBack = turn.task.heldBack() && !turn.hasBrought();
    if (turn.wasCut() || heldBack && othersRun()) {
      return Long.MAX_VALUE;
    }
    return poll.cutAt(turn.task.share().start(), turn.graceSpent || heldBack);
  }

  /** While they do, the answer does not go: what is held back takes nothing from it till then. */
  private boolean othersRun() {
    for (int i = partitions.nextRunning(0); i >= 0; i = partitions.nextRunning(i + 1)) {
      if (!turn(i).task.heldBack()) {
        return true;
      }
    }
    return false;
  }

  private PartitionTurn turn(int running) {
    return Objects.requireNonNull(partitions.get(running).turn);
  }

  /** Once. */
  private long lapsesAt(PartitionTurn turn) {
    return turn.task.reservation().hasLapsed()
        ? Long.MAX_VALUE
        : turn.task.share().start() + poll.grace();
  }
}
