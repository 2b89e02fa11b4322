package dev.timebound.samples.kafka;

import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.samples.kafka.group.Node;
import java.util.function.Function;
import reactor.core.publisher.Mono;

/**
 * What the requests of one connection have in common.
 *
 * @param peer the client's address, for the log
 * @param self this gateway, as the client reached it
 * @param fetches reads for this client
 */
record Session(String peer, Node self, Function<FetchRequest, Mono<FetchResponse>> fetches) {}
