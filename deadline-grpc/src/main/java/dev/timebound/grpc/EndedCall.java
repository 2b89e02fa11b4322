package dev.timebound.grpc;

import io.grpc.Metadata;
import io.grpc.Status;

/**
 * How a call ended that was no success and that its caller did not cancel.
 *
 * @param sent whether the request's headers had gone out
 * @param answered whether the status came from the server, in its trailers; false where the client
 *     made it up: a reset, a connection that failed, a bare HTTP error, a deadline of its own
 * @param callersDeadline whether the call's own deadline had passed when it ended
 */
public record EndedCall(
    Status status, Metadata trailers, boolean sent, boolean answered, boolean callersDeadline) {}
