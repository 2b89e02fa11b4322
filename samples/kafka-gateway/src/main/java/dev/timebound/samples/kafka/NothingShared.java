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
 * The way without a fetcher: a request's partitions are read in its order, each for as long as it
 * takes, and the answer goes when the last one was read. What a fetcher is measured against; no way
 * to serve clients: a partition that never answers holds all of its request's, and nothing is
 * waited for where all of them are at their end.
 */
public final class NothingShared {
  private NothingShared() {}

  /** For {@link KafkaGatewayBuilder#fetchingBy}. */
  public static Function<FetchRequest, Mono<FetchResponse>> over(PartitionStore store) {
    return request ->
        Flux.fromIterable(request.partitions())
            .concatMap(partition -> read(store, request, partition))
            .collectList()
            .map(FetchResponse::new);
  }

  private static Mono<PartitionData> read(
      PartitionStore store, FetchRequest request, FetchRequest.Partition wanted) {
    ReadSpec spec = new ReadSpec(wanted.offset(), wanted.maxBytes(), true, request.isolation());
    return store
        .offsets(wanted.partition())
        .flatMap(
            offsets ->
                store
                    .read(wanted.partition(), spec, Deadline.none())
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
