package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import java.util.Optional;
import java.util.Set;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Where the partitions' batches are kept. What is said here of reads is what {@link
 * PartitionFetcher} relies on; the contract tests in this module's test-jar check it.
 *
 * <p>Nothing is done before subscription, and each subscription asks anew. Signals may come on any
 * thread that may not be blocked; the calls themselves must not block. Each carries in its Context
 * the {@link Deadline} by which the fetcher abandons it, by a cancel. A cancel ends the work at the
 * backend and gives back what it held, permits and connections (FE-22). A store that neither heeds
 * its deadline nor its cancel costs its own partition, and no other one. Thread-safe.
 */
public interface PartitionStore {
  /**
   * Those of the partitions that exist (FE-12); one set, once. An error fails the request's
   * partitions, every one with {@link ErrorCode#STORAGE_ERROR}.
   */
  Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked);

  /**
   * Where an existing partition begins and ends; exactly one. Asked before each read, and after it.
   * From the authority, the one that takes appends, wherever that can be had: {@link
   * Offsets#authoritative()}.
   */
  Mono<Offsets> offsets(TopicPartition partition);

  /**
   * The same on the word of the authority: asked where {@link #offsets} was not and a client's
   * offset lies outside what it said (FE-12). A store whose {@code offsets} is always authoritative
   * need not implement it.
   */
  default Mono<Offsets> authoritativeOffsets(TopicPartition partition) {
    return offsets(partition);
  }

  /**
   * Batches in the order of their offsets, whole, beginning with the one that holds the offset, or
   * the next one where the offset itself is gone. None for an offset at or past the end of what the
   * isolation shows.
   *
   * <ul>
   *   <li>As many as fit into {@code maxBytes}: {@link ReadSpec#admits} says whether one more does.
   *   <li>Each is handed on as soon as it is there: what was handed on before a stall is kept
   *       (FE-10).
   *   <li>Under READ_COMMITTED none that reaches past the last stable offset, and each with the
   *       aborted transactions that have records in it.
   *   <li>The budget is looked at between batches, or object reads: once it has passed, none is
   *       started, and the sequence completes with what it gave. Where it has passed at
   *       subscription the store starts no read of its own, and gives what it holds in memory, if
   *       anything (FE-4). It passes well before the Context's deadline.
   *   <li>An error is told as an error; batches that came before it still count.
   * </ul>
   */
  Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget);

  /**
   * The first offset whose record is at or after a time, or one of the ends; exactly one, which is
   * {@link TimestampOffset#NONE} where no record is.
   *
   * @param timestamp milliseconds since 1970, {@code >= 0}
   */
  Mono<TimestampOffset> offsetFor(TopicPartition partition, long timestamp, Isolation isolation);

  /**
   * Runs {@code wake} after each append to the partition, and after each end of a transaction, from
   * the return of this call until it is disposed; several appends may be told of by one run. It is
   * cheap and does not throw. A run too many costs a read; one too few costs the reader the rest of
   * its wait.
   *
   * @return empty where the store cannot tell, now or ever: the fetcher then asks again after
   *     pauses (FE-8)
   */
  default Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
    return Optional.empty();
  }

  /**
   * Whether a read that was abandoned is worth finishing for the client's next request (FE-24):
   * where it is slow by nature and long on its way, such as an object fetched from afar. It is then
   * not cancelled, but goes on under a deadline and a byte bound of its own. Only for a {@link
   * FetchClient}, with whom it ends.
   */
  default boolean finishesInBackground() {
    return false;
  }
}
