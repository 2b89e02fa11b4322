package dev.timebound.fetch;

import dev.timebound.health.FailureKind;

/**
 * What the end of a turn says: of its partition's health (FE-20), of what was abandoned (FE-23),
 * and of what failed.
 */
final class TurnReports {
  private final FetchParts parts;

  TurnReports(FetchParts parts) {
    this.parts = parts;
  }

  void ended(PartitionTurn turn, long now) {
    TopicPartition partition = turn.task.partition();
    parts.meters().turn(turn.outcome(), now - turn.task.share().start());
    boolean stalled = stalled(turn, now);
    if (turn.abandoned != null) {
      boolean told = stalled || turn.late || parts.health().isPenalised(partition);
      parts.abandonments().abandoned(turn.abandoned, partition, turn.task.position(), told);
    }
    if (turn.end == PartitionTurn.End.FAILED) {
      parts.abandonments().failed(partition, turn.task.position(), turn.cause);
    }
    if (stalled) {
      parts.health().failed(partition, FailureKind.CONNECTION);
    } else if (hasAnswered(turn)) {
      parts.health().answered(partition);
      parts.cuts().answered(partition);
    }
  }

  /** It was to be read, and was passed over. */
  void notStarted(PartitionState state) {
    parts
        .abandonments()
        .abandoned(
            new Abandoned(Abandoned.Operation.FETCH, Abandoned.Stage.NOT_STARTED),
            state.partition(),
            state.position(),
            false);
  }

  private static boolean hasAnswered(PartitionTurn turn) {
    return switch (turn.end) {
      case DONE, OUT_OF_RANGE -> true;
      case CUT -> turn.hasBrought();
      case LATE, FAILED -> false;
    };
  }

  private boolean stalled(PartitionTurn turn, long now) {
    Share share = turn.task.share();
    if (turn.abandoned == null || turn.abandoned.stage() != Abandoned.Stage.READING) {
      return false; // who waits for a permit in vain has not stalled: those who hold it have
    }
    if (turn.late) {
      return share.length() >= Shares.LEAST_MARGIN; // a lesser one says nothing of it (HE-11)
    }
    if (turn.end != PartitionTurn.End.CUT
        || !turn.batches.isEmpty()
        || turn.task.heldBack()) { // it had no grace: its penalty ends in its time
      return false;
    }
    return now - share.start() >= parts.settings().grace().toNanos()
        && parts.cuts().cut(turn.task.partition(), parts.settings().now());
  }
}
