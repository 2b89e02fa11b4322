package dev.timebound.bigtable;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/**
 * How one attempt ended without success: what gRPC says of it, and what only the call path knows.
 *
 * @param trailers null where none came
 */
record CallEnd(Status status, @Nullable Metadata trailers, EndedBy endedBy, Reach reach) {

  /** How far the attempt had come. */
  enum Reach {
    /** The request's headers had not gone out: no server has seen it. */
    UNSENT,
    /** It went out; where the status came from is not known, or it was made on this side. */
    SENT,
    /** The status is the server's own, from its trailers. */
    ANSWERED
  }

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

  boolean isAnswered() {
    return reach == Reach.ANSWERED;
  }
}
