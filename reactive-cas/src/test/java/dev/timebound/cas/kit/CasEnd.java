package dev.timebound.cas.kit;

import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;

/** How a call ends that is not let to its end. */
public final class CasEnd {
  enum Kind {
    STATUS,
    SILENCE,
    RESET,
    GO_AWAY,
    CLOSE,
    RESET_CONNECTION,
    KEEP_ALIVES
  }

  private final Kind kind;
  private final Status status;
  private final Metadata trailers;
  private final long code;
  private final Duration every;

  private CasEnd(Kind kind, Status status, Metadata trailers, long code) {
    this(kind, status, trailers, code, Duration.ZERO);
  }

  private CasEnd(Kind kind, Status status, Metadata trailers, long code, Duration every) {
    this.kind = kind;
    this.status = status;
    this.trailers = trailers;
    this.code = code;
    this.every = every;
  }

  /** With that status. */
  public static CasEnd status(Status status) {
    return status(status, new Metadata());
  }

  /** With that status and these trailers. */
  public static CasEnd status(Status status, Metadata trailers) {
    Metadata copy = new Metadata();
    copy.merge(trailers);
    return new CasEnd(Kind.STATUS, status, copy, 0);
  }

  /** Not at all: nothing more is sent, and of a write nothing more is taken. */
  public static CasEnd silence() {
    return new CasEnd(Kind.SILENCE, Status.OK, new Metadata(), 0);
  }

  /** With RST_STREAM of that HTTP/2 error code, 2 for INTERNAL_ERROR, 8 for CANCEL. */
  public static CasEnd reset(long code) {
    return new CasEnd(Kind.RESET, Status.OK, new Metadata(), code);
  }

  /**
   * With a GOAWAY of that code (0 for NO_ERROR) that disowns this call and all after it on the
   * connection: the client may take them for never processed. Older ones go on.
   */
  public static CasEnd goAway(long code) {
    return new CasEnd(Kind.GO_AWAY, Status.OK, new Metadata(), code);
  }

  /** Closes the connection in order (TCP FIN), with all its calls. */
  public static CasEnd closeConnection() {
    return new CasEnd(Kind.CLOSE, Status.OK, new Metadata(), 0);
  }

  /** Resets the connection (TCP RST), with all its calls. */
  public static CasEnd resetConnection() {
    return new CasEnd(Kind.RESET_CONNECTION, Status.OK, new Metadata(), 0);
  }

  /** Not at all: of a read an empty message is sent every so often, on the real clock. */
  public static CasEnd keepAlives(Duration every) {
    return new CasEnd(Kind.KEEP_ALIVES, Status.OK, new Metadata(), 0, every);
  }

  Kind kind() {
    return kind;
  }

  Status status() {
    return status;
  }

  Metadata trailers() {
    return trailers;
  }

  Duration every() {
    return every;
  }

  long code() {
    return code;
  }
}
