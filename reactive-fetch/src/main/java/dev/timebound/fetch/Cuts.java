package dev.timebound.fetch;

import java.util.List;

/**
 * Ends turns that run at the same time for the others' sake (FE-9): once min_bytes are in they are
 * cut, and what they reserved is free for others after as long a time. Of one thread.
 */
final class Cuts {
  private final List<PartitionState> states;
  private final LongPoll poll;
  private final ByteBudget bytes;

  /** Some partition could not begin for what others have reserved. */
  private boolean waitsForBytes;

  Cuts(List<PartitionState> states, LongPoll poll, ByteBudget bytes) {
    this.states = states;
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
    for (PartitionState state : states) {
      PartitionTurn turn = state.turn;
      if (turn == null) {
        continue;
      }
      if (now >= cutAt(turn)) {
        turn.cut();
      } else if (now >= lapsesAt(turn)) {
        // What it held the others up by is the grace that it would have later.
        turn.graceSpent = waitsForBytes || states.stream().anyMatch(other -> other.blocked);
        bytes.lapse(turn.task.reservation());
      }
    }
    waitsForBytes = false;
  }

  /** When {@link #apply} has something to do by time alone; Long.MAX_VALUE: never. */
  long next() {
    long at = Long.MAX_VALUE;
    if (poll.together()) {
      for (PartitionState state : states) {
        PartitionTurn turn = state.turn;
        if (turn != null) {
          at = Math.min(at, Math.min(cutAt(turn), lapsesAt(turn)));
        }
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
    return states.stream().anyMatch(state -> state.turn != null && !state.turn.task.heldBack());
  }

  /** Once. */
  private long lapsesAt(PartitionTurn turn) {
    return turn.task.reservation().hasLapsed()
        ? Long.MAX_VALUE
        : turn.task.share().start() + poll.grace();
  }
}
