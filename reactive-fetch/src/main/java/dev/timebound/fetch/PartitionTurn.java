package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * One partition's turn in a round: its offsets, its batches, its offsets again, all of it under one
 * cap (FE-2, FE-10, FE-11). What came in before the cap, or a cut, is kept. Its fields are read
 * once it has ended.
 */
final class PartitionTurn {
  /** How it ended. */
  enum End {
    /** The store said all it had to say. */
    DONE,
    /** The cap passed. */
    LATE,
    /** The answer went without waiting for it. */
    CUT,
    OUT_OF_RANGE,
    FAILED
  }

  /**
   * What it is for.
   *
   * @param position the next offset that the request wants of it
   * @param accepted told when a batch was taken
   * @param cuttable whether {@link #cut} will be used
   * @param grace what is left of a turn, in nanoseconds, once min_bytes are in, where it is
   *     cuttable
   */
  record Task(
      TopicPartition partition,
      long position,
      Isolation isolation,
      Share share,
      ByteBudget bytes,
      ByteBudget.Reservation reservation,
      boolean heldBack,
      boolean cuttable,
      long grace,
      Runnable accepted) {}

  private final PartitionReads reads;
  private final PartitionStore store;
  private final Shares shares;
  private final RequestClock clock;
  private final Deadline cap;
  private final Sinks.Empty<Void> cut = Sinks.empty();

  final Task task;
  final List<RecordBatch> batches = new ArrayList<>();
  End end = End.CUT;
  @Nullable Offsets offsets;
  @Nullable Throwable cause;

  /** What was abandoned, where something was. */
  @Nullable Abandoned abandoned;

  /** Its cap passed before all that was asked of the store had come. */
  boolean late;

  /** It stopped for the limits' sake, with more there. */
  boolean limited;

  /** Written by the thread that cuts. */
  private volatile boolean wasCut;

  /** It has kept others waiting for as long as the grace is. Of the thread that cuts. */
  boolean graceSpent;

  private volatile boolean brought;

  /** How long the store took to say where the partition begins and ends. */
  private long offsetsTook;

  private boolean storeDone;
  private boolean refused;
  private ReadTrace trace = new ReadTrace();

  PartitionTurn(
      PartitionStore store, PartitionReads reads, Shares shares, RequestClock clock, Task task) {
    this.store = store;
    this.reads = reads;
    this.shares = shares;
    this.clock = clock;
    this.task = task;
    this.cap = clock.at(task.share().cap());
  }

  /** Completes when the turn has ended, in whatever way. */
  Mono<Void> run() {
    return stage(() -> store.offsets(task.partition()))
        .flatMap(this::confirmed)
        .flatMap(this::begun)
        .onErrorResume(this::ended)
        .then(Mono.fromRunnable(this::account));
  }

  /** Ends the turn with what it has; from any thread. */
  void cut() {
    wasCut = true;
    cut.tryEmitEmpty();
  }

  boolean wasCut() {
    return wasCut;
  }

  /** Whether it has brought a batch so far; from any thread. */
  boolean hasBrought() {
    return brought;
  }

  /** Where the partition's reader goes on. */
  long nextOffset() {
    return batches.isEmpty() ? task.position() : batches.get(batches.size() - 1).nextOffset();
  }

  /** Whether it ended with more there than it read. */
  boolean isMoreToRead() {
    return offsets != null && nextOffset() < offsets.end(task.isolation());
  }

  /** What it never is, unless there is a fault in here: it ends as the store's failure. */
  PartitionTurn broken(Throwable thrown) {
    end = End.FAILED;
    cause = thrown;
    return this;
  }

  String outcome() {
    return switch (end) {
      case DONE -> batches.isEmpty() ? "empty" : "read";
      case LATE -> "stalled";
      case CUT -> "cut";
      case OUT_OF_RANGE -> "out_of_range";
      case FAILED -> "error";
    };
  }

  /** An offset is out of range on the authority's word only (FE-12). */
  private Mono<Offsets> confirmed(Offsets first) {
    return first.contains(task.position()) || first.authoritative()
        ? Mono.just(first)
        : stage(() -> store.authoritativeOffsets(task.partition()));
  }

  private Mono<Void> begun(Offsets first) {
    offsets = first;
    offsetsTook = clock.now() - task.share().start();
    if (!first.contains(task.position())) {
      end = End.OUT_OF_RANGE;
      return Mono.empty();
    }
    boolean more = task.position() < first.end(task.isolation());
    if (!more && first.authoritative()) {
      end = End.DONE;
      return Mono.empty();
    }
    ByteBudget.Reservation reservation = task.reservation();
    if (reservation.bytes() == 0 && !reservation.firstOfAnySize()) {
      end = End.DONE;
      limited = more;
      return Mono.empty();
    }
    // Not before: the time that the offsets took is not the budget's (FE-5).
    long budgetEnd = shares.budgetEnd(task.share(), clock.now());
    return read(reservation, clock.at(budgetEnd)).then(Mono.defer(() -> wasRead(budgetEnd)));
  }

  private Mono<Void> read(ByteBudget.Reservation reservation, Deadline budget) {
    ReadSpec spec =
        new ReadSpec(
            task.position(), reservation.bytes(), reservation.firstOfAnySize(), task.isolation());
    trace = new ReadTrace();
    Flux<RecordBatch> source =
        Flux.defer(() -> reads.read(task.partition(), spec, budget))
            .doOnComplete(() -> storeDone = true)
            .filter(batch -> batch.lastOffset() >= task.position());
    if (task.cuttable()) {
      source = source.takeUntilOther(cut.asMono());
    }
    ReadTrace current = trace;
    // A batch is accepted where nothing can drop it any more.
    return source
        .transform(Deadlines.of(cap, "fetch"))
        .contextWrite(context -> context.put(ReadTrace.class, current))
        .takeWhile(this::taken)
        .then();
  }

  private boolean taken(RecordBatch batch) {
    if (!batches.isEmpty() && batch.baseOffset() < nextOffset()) {
      // records twice, or a client whose position goes back
      throw new IllegalStateException(
          "the store gave a batch of %s from %d on after one that ends at %d (expected: in order)"
              .formatted(task.partition(), batch.baseOffset(), nextOffset() - 1));
    }
    if (!task.bytes().accept(task.reservation(), batch.sizeInBytes())) {
      refused = true;
      return false;
    }
    batches.add(batch);
    brought = true;
    task.accepted().run();
    return true;
  }

  private Mono<Void> wasRead(long budgetEnd) {
    if (!storeDone && !refused) {
      abandon(Abandoned.Operation.FETCH);
      return Mono.empty();
    }
    end = End.DONE;
    Offsets first = offsets;
    limited =
        refused
            || (first != null
                && nextOffset() < first.end(task.isolation())
                && clock.now() < budgetEnd);
    if (cap.isExpired() || isInVain()) {
      return Mono.empty();
    }
    return stage(() -> store.offsets(task.partition()))
        .doOnNext(again -> offsets = again)
        .onErrorResume(this::withoutAgain)
        .hasElement()
        .doOnNext(
            came -> {
              if (!came && cause == null) {
                abandon(Abandoned.Operation.OFFSET_STAGE);
              }
            })
        .then();
  }

  /**
   * Whether the offsets would be cut off, and a connection with them, after every read of a store
   * that takes its time: the first ones are answered without that.
   */
  private boolean isInVain() {
    return task.cuttable() && offsetsTook > task.grace() && task.bytes().enough();
  }

  /** The offsets did not come again: the first ones are answered (FE-10). */
  private Mono<Offsets> withoutAgain(Throwable error) {
    if (error instanceof DeadlineExceededException) {
      late = true;
    } else {
      cause = error;
    }
    return Mono.empty();
  }

  /** One call for offsets, under the turn's cap and cut; empty only where it was cut. */
  private Mono<Offsets> stage(Supplier<Mono<Offsets>> call) {
    return Mono.defer(
        () -> {
          ReadTrace current = new ReadTrace();
          trace = current;
          Mono<Offsets> source = Mono.defer(call).switchIfEmpty(Mono.defer(this::noOffsets));
          if (task.cuttable()) {
            source = source.takeUntilOther(cut.asMono());
          }
          return source
              .transform(Deadlines.of(cap, "fetch offsets"))
              .contextWrite(context -> context.put(ReadTrace.class, current));
        });
  }

  /** Where it was cut no fault of the store's: what is cancelled may complete in that moment. */
  private Mono<Offsets> noOffsets() {
    return wasCut
        ? Mono.empty()
        : Mono.error(new IllegalStateException("the store gave no offsets, and no error"));
  }

  private Mono<Void> ended(Throwable error) {
    if (error instanceof DeadlineExceededException) {
      end = End.LATE;
      late = true;
      abandon(offsets == null ? Abandoned.Operation.OFFSET_STAGE : Abandoned.Operation.FETCH);
    } else {
      end = End.FAILED;
      cause = error;
    }
    return Mono.empty();
  }

  private void abandon(Abandoned.Operation operation) {
    abandoned = new Abandoned(operation, trace.stage());
  }

  /** What was cut before it had offsets ends without a word. */
  private void account() {
    if (end == End.CUT && abandoned == null) {
      abandon(Abandoned.Operation.OFFSET_STAGE);
    }
    if (abandoned != null) {
      cap.charge("fetch " + task.partition() + " " + outcome(), clock.now() - task.share().start());
    }
  }
}
