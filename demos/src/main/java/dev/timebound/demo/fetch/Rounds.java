package dev.timebound.demo.fetch;

import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionData;
import java.util.List;
import java.util.function.Function;
import reactor.core.publisher.Mono;

/**
 * Counts the Fetches of one client around whatever answers them. A round is a Fetch that was
 * answered. Thread-safe.
 */
final class Rounds {
  private long begun;
  private long ended;
  private long nanos;
  private long longest;
  private long asked;
  private long barren;

  /**
   * What came of a client's Fetches so far.
   *
   * @param begun Fetches that came
   * @param ended Fetches that were answered
   * @param meanMillis from a Fetch to its answer; 0 where none was answered
   * @param longestMillis the longest of these
   * @param asked rounds that asked for healthy partitions: a client's first may be for the other
   *     one alone
   * @param barren of these, those that brought no record of them
   */
  record Figures(
      long begun, long ended, double meanMillis, double longestMillis, long asked, long barren) {}

  Function<FetchRequest, Mono<FetchResponse>> around(
      Function<FetchRequest, Mono<FetchResponse>> answers) {
    return request ->
        Mono.defer(
            () -> {
              long began = System.nanoTime();
              begun();
              return answers
                  .apply(request)
                  .doOnNext(answer -> ended(System.nanoTime() - began, healthy(answer)));
            });
  }

  private static List<PartitionData> healthy(FetchResponse answer) {
    return answer.partitions().stream()
        .filter(data -> Backlog.isHealthy(data.partition().partition()))
        .toList();
  }

  private synchronized void begun() {
    begun++;
  }

  private synchronized void ended(long took, List<PartitionData> healthy) {
    ended++;
    nanos += took;
    longest = Math.max(longest, took);
    if (!healthy.isEmpty()) {
      asked++;
      barren += healthy.stream().allMatch(data -> data.batches().isEmpty()) ? 1 : 0;
    }
  }

  synchronized Figures figures() {
    return new Figures(
        begun, ended, ended == 0 ? 0 : nanos / 1e6 / ended, longest / 1e6, asked, barren);
  }
}
