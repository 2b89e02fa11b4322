package dev.timebound.fetch.s3;

import dev.timebound.fetch.TopicPartition;
import java.util.List;
import reactor.core.publisher.Mono;

/**
 * Moves a partition's start: first an object that says so, then whole objects before it are
 * deleted, save the newest, which says where the partition ends.
 */
final class Retention {
  /** Keys of a listing, and of a delete. */
  private static final int AT_ONCE = 1000;

  private final Calls calls;
  private final Keys keys;
  private final TopicPartition partition;
  private final S3Log log;

  Retention(Calls calls, Keys keys, TopicPartition partition, S3Log log) {
    this.calls = calls;
    this.keys = keys;
    this.partition = partition;
    this.log = log;
  }

  Mono<Void> deleteBefore(long offset) {
    return log.offsets()
        .flatMap(
            offsets -> {
              if (offset > offsets.highWatermark()) {
                return Mono.error(
                    S3Store.refused("offset", offset, "<= " + offsets.highWatermark()));
              }
              long start = Math.max(offset, offsets.logStart());
              Mono<Void> said =
                  start == offsets.logStart()
                      ? Mono.empty()
                      : calls.put(keys.start(partition, start));
              return start == 0 ? Mono.empty() : said.then(Mono.defer(() -> clear(start)));
            });
  }

  /** What was left over by one that did not come to its end, too. */
  private Mono<Void> clear(long start) {
    return log.floor(start)
        .flatMap(
            kept ->
                kept < 0
                    ? Mono.empty()
                    : deleteAfter(keys.log(partition), keys.object(partition, kept)))
        .then(Mono.defer(() -> deleteAfter(keys.starts(partition), keys.start(partition, start))));
  }

  /** All that is listed after a key, which are lesser offsets. */
  private Mono<Void> deleteAfter(String prefix, String key) {
    return Mono.defer(() -> calls.list(prefix, key, AT_ONCE))
        .flatMap(
            found -> found.isEmpty() ? Mono.just(found) : calls.delete(found).thenReturn(found))
        .repeat()
        .takeUntil(List::isEmpty)
        .then();
  }
}
