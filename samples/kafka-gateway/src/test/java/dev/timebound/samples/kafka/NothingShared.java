package dev.timebound.samples.kafka;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import java.util.List;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Reads a request's partitions in its order, each as long as it takes: the way without a fetcher.
 */
final class NothingShared {
  private static final int MOST = 1024 * 1024;

  private NothingShared() {}

  static Function<FetchRequest, Mono<FetchResponse>> over(PartitionStore store) {
    return request ->
        Flux.fromIterable(request.partitions())
            .concatMap(partition -> read(store, request, partition))
            .collectList()
            .map(FetchResponse::new);
  }

  private static Mono<PartitionData> read(
      PartitionStore store, FetchRequest request, FetchRequest.Partition wanted) {
    return store
        .offsets(wanted.partition())
        .flatMap(
            offsets ->
                store
                    .read(
                        wanted.partition(),
                        new ReadSpec(wanted.offset(), MOST, true, request.isolation()),
                        Deadline.none())
                    .collectList()
                    .map(
                        batches ->
                            new PartitionData(
                                wanted.partition(),
                                ErrorCode.NONE,
                                offsets.highWatermark(),
                                offsets.lastStable(),
                                offsets.logStart(),
                                List.of(),
                                batches,
                                null)));
  }
}
