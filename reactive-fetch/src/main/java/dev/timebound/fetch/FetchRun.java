package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;

/**
 * One request under way: gives the partitions their turns, waits for min_bytes, and answers. All of
 * it runs in {@link #serial}; what is decided is decided by {@link Shares}, {@link Turns}, {@link
 * ByteBudget} and {@link LongPoll}.
 */
final class FetchRun implements Disposable {
  /** Takes the answers. */
  interface Listener {
    /** One partition has its answer, and the request goes on. */
    void answered(PartitionData data);

    /** The request is over: all that were not told yet, in the order of the request. */
    void done(List<PartitionData> rest);
  }

  private final FetchParts parts;
  private final PartitionReads reads;
  private final FetchRequest request;
  private final boolean each;
  private final Listener listener;
  private final RequestClock clock;
  private final Context context;
  private final Shares shares;
  private final ByteBudget bytes;
  private final Turns turns;
  private final LongPoll poll;
  private final RequestPartitions partitions;
  private final Cuts cuts;
  private final TurnReports reports;
  private final FetchObservations.Observed observed;
  private final RunTimer timer;
  private final AppendWatches watches;
  private final Serial serial = new Serial();
  private Disposable metadata = Disposables.disposed();
  private Disposable held = Disposables.disposed();
  private int rounds;

  private boolean ended;

  /**
   * @param each a partition that has brought something is answered at once
   * @param deadline the read deadline
   */
  FetchRun(
      FetchParts parts,
      PartitionReads reads,
      FetchRequest request,
      boolean each,
      Deadline deadline,
      Context context,
      Listener listener) {
    this.parts = parts;
    this.reads = reads;
    this.request = request;
    this.each = each;
    this.listener = listener;
    this.context = context;
    clock = new RequestClock(deadline);
    FetchSettings settings = parts.settings();
    shares = settings.shares(request.maxWait(), clock.total());
    bytes = new ByteBudget(request.maxBytes(), request.minBytes());
    Turns.Limits limits = settings.limits();
    turns = new Turns(request.partitions().size(), limits);
    poll = new LongPoll(shares, bytes, limits.together(), settings.grace().toNanos());
    timer = new RunTimer(clock, () -> serial.run(this::timePassed));
    watches = new AppendWatches(parts.store(), timer, index -> serial.run(() -> due(index)));
    reports = new TurnReports(parts);
    partitions = new RequestPartitions(request);
    cuts = new Cuts(partitions, poll, bytes);
    observed = parts.observations().begin(request, context);
  }

  /** Reads which partitions exist, under a quarter of the time (FE-17), then goes round. */
  void start() {
    serial.run(
        () -> {
          if (!ended) { // a client may have left before this
            held = clock.holdTimer();
            readMetadata();
          }
        });
  }

  private void readMetadata() {
    Set<TopicPartition> asked = new LinkedHashSet<>();
    partitions.forEach(state -> asked.add(state.partition()));
    metadata =
        Mono.defer(() -> parts.store().existing(asked))
            .defaultIfEmpty(Set.of())
            .transform(Deadlines.of(clock.at(clock.total() / 4), "fetch metadata"))
            .contextWrite(context)
            .subscribe(
                existing -> serial.run(() -> begin(existing)),
                error -> serial.run(() -> withoutMetadata(error)));
  }

  /** The client left: its reads are cancelled, what they held is given back (FE-25). */
  @Override
  public void dispose() {
    serial.run(
        () -> {
          if (!ended) {
            end("cancelled");
            partitions.forEach(state -> reads.left(state.partition()));
          }
        });
  }

  private void begin(Set<TopicPartition> existing) {
    for (int i = 0; i < partitions.size(); i++) {
      PartitionState state = partitions.get(i);
      if (!existing.contains(state.partition())) {
        state.unknown(); // it counts until its turn has come (FE-2)
      }
      turns.due(i);
    }
    turns.nextRound();
    rounds = 1;
    advance();
  }

  private void withoutMetadata(Throwable error) {
    if (!ended) {
      partitions.forEach(state -> state.failed(ErrorCode.STORAGE_ERROR, error));
      answer("metadata");
    }
  }

  private void timePassed() {
    timer.fired();
    advance();
  }

  /** Does whatever has become possible; after every event. */
  private void advance() {
    while (!ended) {
      long now = clock.now();
      cuts.apply(now);
      dueBlocked();
      if (beginNext(now)) {
        continue;
      }
      boolean over = turns.roundOver();
      if (over && (poll.isOver(now) || partitions.allOver())) {
        answer(poll.outcome(now));
      } else if (over && turns.nextRound()) {
        rounds++;
      } else if ((over || poll.together()) && poll.pauseOver(now) && duePolled()) {
        continue;
      } else {
        timer.set(nextInstant(now, over));
        return;
      }
    }
  }

  /** Begins one turn, or passes over a partition that gets none; false where none is next. */
  private boolean beginNext(long now) {
    int next = turns.next(now, this::isHeldBack);
    if (next < 0) {
      return false;
    }
    PartitionState state = partitions.get(next);
    boolean heldBack = isHeldBack(next);
    if (heldBack && waitsForOthers(next, now)) {
      return false;
    }
    if (state.isUnknown()) {
      passOver(next, now);
      poll.error();
      over(next, state);
    } else if (now >= clock.total() || !poll.mayBegin(now, partitions.hadItsTurn(next), heldBack)) {
      passOver(next, now);
      partitions.unblocked(next);
      if (!state.begun) {
        state.begun = true;
        reports.notStarted(state);
      }
    } else {
      ByteBudget.Reservation reservation = bytes.reserve(state.wanted());
      if (reservation == null) {
        cuts.waitsForBytes();
        return false;
      }
      begin(next, state, now, heldBack, reservation);
    }
    return true;
  }

  private void passOver(int partition, long now) {
    turns.begin(partition, now);
    turns.ended(partition);
  }

  private void begin(
      int index,
      PartitionState state,
      long now,
      boolean heldBack,
      ByteBudget.Reservation reservation) {
    if (!state.begun && poll.waits()) {
      watches.watch(index, state.partition()).ifPresent(watch -> state.watch = watch);
    }
    Share share = shares.begin(now, turns.left(), heldBack);
    turns.begin(index, now);
    PartitionTurn turn =
        new PartitionTurn(
            parts.store(),
            reads,
            shares,
            clock,
            new PartitionTurn.Task(
                state.partition(),
                state.position(),
                request.isolation(),
                share,
                bytes,
                reservation,
                heldBack,
                poll.together(),
                poll.grace(),
                this::accepted));
    partitions.begins(index, turn);
    state.reading =
        turn.run()
            .contextWrite(context)
            .subscribe(
                never -> {},
                thrown -> serial.run(() -> ended(index, state, turn.broken(thrown))),
                () -> serial.run(() -> ended(index, state, turn)));
  }

  private void ended(int index, PartitionState state, PartitionTurn turn) {
    if (ended) {
      return;
    }
    bytes.release(turn.task.reservation());
    partitions.took(index, turn);
    turns.ended(index);
    reports.ended(turn, clock.now());
    wantsNext(index, state, turn);
    advance();
  }

  /** When the partition wants its next turn, if it wants one. */
  private void wantsNext(int index, PartitionState state, PartitionTurn turn) {
    if (turn.end == PartitionTurn.End.OUT_OF_RANGE) {
      poll.error();
      over(index, state);
      return;
    }
    boolean brought = !turn.batches.isEmpty();
    if (turn.end == PartitionTurn.End.DONE && turn.limited) {
      if (bytes.accepted() > 0) {
        poll.limited();
      } else if (!turn.task.reservation().firstOfAnySize()) {
        partitions.blocked(index);
      } else {
        partitions.polled(index); // it could have brought any batch, and brought none
      }
    } else if (brought && turn.isMoreToRead()) {
      turns.due(index);
    }
    if (state.hasBatches()) {
      if (state.wanted() == 0) {
        poll.limited();
      }
      if (each) {
        over(index, state);
      }
    }
  }

  private void over(int index, PartitionState state) {
    partitions.over(index);
    turns.never(index);
    if (each) {
      listener.answered(state.answer());
    }
  }

  private boolean isHeldBack(int index) {
    TopicPartition partition = partitions.get(index).partition();
    return partitions.size() > 1
        && (parts.health().isPenalised(partition)
            || parts.cuts().isHeldBack(partition, parts.settings().now()))
        && !reads.isAtHand(partition);
  }

  /**
   * It is read last: beside others that may well bring enough it is only tried, and that not in
   * every request, for each time leaves a read to be cancelled (FE-20, FE-22).
   */
  private boolean waitsForOthers(int index, long now) {
    return poll.together()
        && turns.isBusy(now)
        && poll.mayBegin(now, partitions.hadItsTurn(index), true)
        && !parts.cuts().mayTry(partitions.get(index).partition(), parts.settings().now());
  }

  /** On the thread that read a batch. */
  private void accepted() {
    if (poll.together() && poll.isWorthJudging(clock.now())) {
      serial.run(this::advance);
    }
  }

  /** Those whose first batch is too large for what they may bring, where it may be of any size. */
  private void dueBlocked() {
    if (partitions.anyBlocked() && bytes.firstIsFree()) {
      for (int i = partitions.nextBlocked(0); i >= 0; i = partitions.nextBlocked(i + 1)) {
        turns.due(i);
      }
    }
  }

  private void due(int index) {
    if (!ended && !partitions.isOver(index)) {
      turns.due(index);
      advance();
    }
  }

  private boolean duePolled() {
    for (int i = partitions.nextPolled(0); i >= 0; i = partitions.nextPolled(i + 1)) {
      turns.due(i);
    }
    return partitions.anyPolled();
  }

  /** When something becomes possible by time alone; Long.MAX_VALUE: nothing does. */
  private long nextInstant(long now, boolean roundOver) {
    long at = turns.nextPlaceAt(now);
    if (roundOver || poll.together()) {
      if (now < shares.endOfWait()) {
        at = Math.min(at, shares.endOfWait());
      }
      if (partitions.anyPolled()) {
        at = Math.min(at, poll.nextPause(now));
      }
    }
    return Math.min(at, cuts.next());
  }

  private void answer(String outcome) {
    List<PartitionData> rest = new ArrayList<>();
    for (int i = 0; i < partitions.size(); i++) {
      if (!each || !partitions.isOver(i)) {
        rest.add(partitions.get(i).answer());
      }
    }
    end(outcome);
    listener.done(rest);
  }

  private void end(String outcome) {
    ended = true;
    timer.stop();
    held.dispose();
    metadata.dispose();
    partitions.forEach(PartitionState::end);
    parts.meters().request(outcome, rounds, bytes.accepted(), clock.now());
    observed.ended(outcome, bytes.accepted(), clock.deadline());
  }
}
