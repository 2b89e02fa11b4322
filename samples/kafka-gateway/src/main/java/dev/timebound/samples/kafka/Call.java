package dev.timebound.samples.kafka;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;

/**
 * One request as it was read.
 *
 * @param session its connection's
 * @param clientId the client's own name; empty for none
 */
record Call(
    Session session,
    ApiKeys api,
    short version,
    int correlationId,
    String clientId,
    AbstractRequest request) {}
