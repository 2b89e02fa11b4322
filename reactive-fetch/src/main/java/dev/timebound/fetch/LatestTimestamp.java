package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import reactor.core.publisher.Mono;

/**
 * The record with the latest time, found by questions for a time, which any store answers: whether
 * a record is at or after it. The last batch's time is tried first. It is the latest in nearly
 * every log, so that two questions do; where times are out of order the step doubles, and is then
 * halved.
 */
final class LatestTimestamp {
  private final PartitionStore store;
  private final TopicPartition partition;
  private final Isolation isolation;

  private LatestTimestamp(PartitionStore store, TopicPartition partition, Isolation isolation) {
    this.store = store;
    this.partition = partition;
    this.isolation = isolation;
  }

  /**
   * @return the first of the records that have it; {@link TimestampOffset#NONE} where none has a
   *     time
   */
  static Mono<TimestampOffset> of(
      PartitionStore store, TopicPartition partition, Isolation isolation, Deadline deadline) {
    return new LatestTimestamp(store, partition, isolation).found(deadline);
  }

  private Mono<TimestampOffset> found(Deadline deadline) {
    return store
        .authoritativeOffsets(partition)
        .flatMap(
            offsets -> {
              long end = offsets.end(isolation);
              return end <= offsets.logStart()
                  ? Mono.just(0L)
                  : store
                      .read(partition, new ReadSpec(end - 1, 1, true, isolation), deadline)
                      .next()
                      .map(last -> Math.max(0, last.maxTimestamp()))
                      .defaultIfEmpty(0L);
            })
        .flatMap(
            time ->
                at(time)
                    .flatMap(
                        first ->
                            first.offset() < 0
                                ? Mono.just(first)
                                : further(known(first, time), 1)));
  }

  private Mono<TimestampOffset> at(long time) {
    return store.offsetFor(partition, time, isolation);
  }

  /** A record that was found for a time has that one at least. */
  private static TimestampOffset known(TimestampOffset found, long time) {
    return found.timestamp() < time ? new TimestampOffset(found.offset(), time) : found;
  }

  private Mono<TimestampOffset> further(TimestampOffset best, long step) {
    long time = best.timestamp() + Math.min(step, Long.MAX_VALUE - best.timestamp());
    if (time == best.timestamp()) {
      return Mono.just(best);
    }
    return at(time)
        .flatMap(
            found ->
                found.offset() < 0
                    ? between(best, time)
                    : further(known(found, time), Math.max(step, step * 2)));
  }

  /** None is at or after {@code none}. */
  private Mono<TimestampOffset> between(TimestampOffset best, long none) {
    long time = best.timestamp() + (none - best.timestamp()) / 2;
    if (time == best.timestamp()) {
      return Mono.just(best);
    }
    return at(time)
        .flatMap(
            found -> found.offset() < 0 ? between(best, time) : between(known(found, time), none));
  }
}
