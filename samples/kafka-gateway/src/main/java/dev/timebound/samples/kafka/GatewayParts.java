package dev.timebound.samples.kafka;

import dev.timebound.fetch.FetchClient;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionFetcher;
import dev.timebound.samples.kafka.group.GroupCoordinator;
import dev.timebound.samples.kafka.group.GroupHome;
import dev.timebound.samples.kafka.group.OffsetStore;
import dev.timebound.samples.kafka.log.TopicLog;
import java.util.function.Function;
import org.apache.kafka.common.protocol.ApiKeys;
import reactor.core.publisher.Mono;

/**
 * What a gateway is made of.
 *
 * @param fetches what answers the Fetches of a connection
 */
record GatewayParts(
    GatewaySettings settings,
    TopicLog log,
    OffsetStore offsets,
    PartitionFetcher fetcher,
    GroupCoordinator groups,
    GroupHome home,
    Function<FetchClient, Function<FetchRequest, Mono<FetchResponse>>> fetches) {

  /** Up to the versions at which topics get ids, and members their own instances. */
  Apis apis() {
    Apis apis =
        new Apis()
            .serve(ApiKeys.METADATA, 0, 9, new MetadataHandler(log, settings))
            .serve(ApiKeys.LIST_OFFSETS, 1, 7, new ListOffsetsHandler(fetcher))
            .serve(ApiKeys.FETCH, 4, 12, new FetchHandler(settings.maxFetchBytes()))
            .serve(ApiKeys.PRODUCE, 3, 9, new ProduceHandler(log, settings))
            .serve(
                ApiKeys.INIT_PRODUCER_ID, 0, 4, new ProducerIdHandler(log, settings.requestTime()));
    new GroupHandlers(groups, home, settings.requestTime()).serveIn(apis);
    new GroupOffsetHandlers(groups, home, offsets, settings.requestTime()).serveIn(apis);
    return apis;
  }

  void close() {
    groups.dispose();
    fetcher.close();
  }
}
