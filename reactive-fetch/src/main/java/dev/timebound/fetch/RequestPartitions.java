package dev.timebound.fetch;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.Consumer;

/**
 * The partitions of one request, and which of them are in what state: a request of thousands looks,
 * after each event, at those alone that the event may concern. Of one thread.
 */
final class RequestPartitions {
  private final List<PartitionState> states = new ArrayList<>();
  private final BitSet running = new BitSet();
  private final BitSet over = new BitSet();
  private final BitSet blocked = new BitSet();
  private final BitSet polled = new BitSet();

  RequestPartitions(FetchRequest request) {
    for (FetchRequest.Partition asked : request.partitions()) {
      states.add(new PartitionState(asked, request.isolation()));
    }
  }

  int size() {
    return states.size();
  }

  PartitionState get(int index) {
    return states.get(index);
  }

  void forEach(Consumer<PartitionState> action) {
    states.forEach(action);
  }

  void begins(int index, PartitionTurn turn) {
    states.get(index).begins(turn);
    running.set(index);
    blocked.clear(index);
    polled.clear(index);
  }

  /** Its turn has ended. */
  void took(int index, PartitionTurn turn) {
    PartitionState state = states.get(index);
    state.took(turn);
    running.clear(index);
    if (state.watch == null || turn.end != PartitionTurn.End.DONE) {
      polled(index);
    }
  }

  /** Those whose turn runs: the first from there on, as {@link BitSet#nextSetBit}. */
  int nextRunning(int from) {
    return running.nextSetBit(from);
  }

  /** It has its answer, and wants no turn any more. */
  void over(int index) {
    over.set(index);
    blocked.clear(index);
    polled.clear(index);
  }

  boolean isOver(int index) {
    return over.get(index);
  }

  boolean allOver() {
    return over.cardinality() == states.size();
  }

  /** Its next batch is larger than what it may bring, until it is the request's first one. */
  void blocked(int index) {
    blocked.set(index);
  }

  void unblocked(int index) {
    blocked.clear(index);
  }

  boolean anyBlocked() {
    return !blocked.isEmpty();
  }

  int nextBlocked(int from) {
    return blocked.nextSetBit(from);
  }

  /** Nothing will tell that it is worth another turn: it is asked again after a pause. */
  void polled(int index) {
    polled.set(index);
  }

  boolean anyPolled() {
    return !polled.isEmpty();
  }

  int nextPolled(int from) {
    return polled.nextSetBit(from);
  }

  /** Whether it was asked, and could bring what it had. */
  boolean hadItsTurn(int index) {
    return states.get(index).begun && !blocked.get(index);
  }
}
