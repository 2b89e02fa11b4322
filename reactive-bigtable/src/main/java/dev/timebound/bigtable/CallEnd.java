package dev.timebound.bigtable;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/**
 * How one attempt ended without success: what gRPC says of it, and what only the call path knows.
 *
 * @param trailers null where none came
 * @param sent whether the request's headers had gone out
 */
record CallEnd(Status status, @Nullable Metadata trailers, EndedBy endedBy, boolean sent) {

  /** Who ended the attempt; the status code alone does not tell. */
  enum EndedBy {
    /** The server, a proxy or the transport: everything that this side did not do by itself. */
    PEER,
    /** The caller's own deadline passed, whichever side noticed first. */
    CALLER_DEADLINE,
    /** The caller does not want the answer any more. */
    CALLER_CANCEL,
    /** Our own limit on the wait for headers. */
    HEADERS_TIMEOUT,
    /** Our own limit on a wait with nothing received. */
    GAP_TIMEOUT
  }

  /** An attempt ended by the other side, its request sent. */
  static CallEnd byPeer(Status status, @Nullable Metadata trailers) {
    return new CallEnd(status, trailers, EndedBy.PEER, true);
  }
}
