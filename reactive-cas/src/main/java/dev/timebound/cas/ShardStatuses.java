package dev.timebound.cas;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.health.FailureKind;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The one table from how an attempt ended to what it says of its shard and what follows from it
 * (CAS-4, CAS-20, CAS-20a).
 */
final class ShardStatuses {
  /** What the transport makes up where a connection breaks, beside UNAVAILABLE. */
  private static final Set<Code> BROKEN = EnumSet.of(Code.INTERNAL, Code.UNKNOWN, Code.CANCELLED);

  /** What a proxy may say as well as a server. */
  private static final Set<Code> REFUSALS =
      EnumSet.of(Code.UNAUTHENTICATED, Code.PERMISSION_DENIED);

  private static final String TOO_LARGE = "gRPC message exceeds maximum size";

  private ShardStatuses() {}

  /** What follows from the end of an attempt. */
  enum Verdict {
    /** The caller's deadline or its own doing: says nothing of the shard. */
    CALLER(null, false),
    /** It waited for something of this side's: says nothing of the shard, another may have it. */
    HERE(null, true),
    /** The shard may be dead: another one is asked at once. */
    CONNECTION(FailureKind.CONNECTION, true),
    /** It has too much to do. */
    OVERLOAD(FailureKind.OVERLOAD, true),
    /** It lives and asks to be asked again. */
    TRANSIENT(FailureKind.ANSWER, true),
    MISSING(FailureKind.ANSWER, false),
    UNAUTHENTICATED(FailureKind.ANSWER, false),
    /** It said no, and would again. */
    FINAL(FailureKind.ANSWER, false);

    /** What is reported of the shard; null: nothing. */
    final @Nullable FailureKind kind;

    /** The same shard may be asked again. */
    final boolean retryable;

    Verdict(@Nullable FailureKind kind, boolean retryable) {
      this.kind = kind;
      this.retryable = retryable;
    }
  }

  /** Of an attempt's failure, as {@link #told} words it. */
  static Verdict of(Throwable failure) {
    if (failure instanceof DeadlineExceededException) {
      return Verdict.CALLER;
    }
    if (failure instanceof WaitedHereException) {
      return Verdict.HERE;
    }
    if (!(failure instanceof StatusRuntimeException e) || failure instanceof DataLossException) {
      return Verdict.FINAL;
    }
    String description = e.getStatus().getDescription();
    return switch (e.getStatus().getCode()) {
      case UNAVAILABLE, DEADLINE_EXCEEDED -> Verdict.CONNECTION;
      case RESOURCE_EXHAUSTED ->
          description != null && description.contains(TOO_LARGE) ? Verdict.FINAL : Verdict.OVERLOAD;
      case ABORTED, CANCELLED, UNKNOWN -> Verdict.TRANSIENT;
      // a server that tells of a reset behind it
      case INTERNAL -> tellsOfReset(description) ? Verdict.TRANSIENT : Verdict.FINAL;
      case NOT_FOUND -> Verdict.MISSING;
      case UNAUTHENTICATED -> Verdict.UNAUTHENTICATED;
      default -> Verdict.FINAL;
    };
  }

  /**
   * A call's end in words that name the endpoint. What the transport tells of a connection that
   * broke, under whatever code, is UNAVAILABLE: with no trailers it is not the server's word. So is
   * the answer of something that is no gRPC server, such as a proxy whose server is away.
   *
   * @param answered the status came in the server's trailers
   */
  static Status told(Status status, boolean answered, String where) {
    String description = status.getDescription();
    Code code = status.getCode();
    boolean foreign = TransportWords.isForeign(description);
    String said =
        answered && !foreign ? description : TransportWords.of(description, status.getCause());
    String words = said == null || said.isEmpty() ? "" : ": " + said;
    if (foreign && !REFUSALS.contains(code)) {
      return Status.UNAVAILABLE.withDescription(where + words).withCause(status.getCause());
    }
    boolean broken =
        !answered
            && (BROKEN.contains(code)
                || (code == Code.RESOURCE_EXHAUSTED && tellsOfGoaway(description)));
    if (broken) {
      return Status.UNAVAILABLE
          .withDescription(where + ": " + code + words)
          .withCause(status.getCause());
    }
    return status.withDescription(where + words);
  }

  /**
   * The same failure, for one of several callers that waited for the same thing: what each adds to
   * it must not be seen by the others.
   */
  static Throwable own(Throwable shared) {
    if (shared instanceof WaitedHereException here) {
      return here.again();
    }
    return shared.getClass() == StatusRuntimeException.class
        ? new StatusRuntimeException(
            Status.fromThrowable(shared), Status.trailersFromThrowable(shared))
        : shared;
  }

  private static boolean tellsOfReset(@Nullable String description) {
    return has(description, "rst_stream") || has(description, "rst stream");
  }

  private static boolean tellsOfGoaway(@Nullable String description) {
    return has(description, "goaway");
  }

  private static boolean has(@Nullable String description, String lowerCase) {
    return description != null && description.toLowerCase(Locale.ROOT).contains(lowerCase);
  }
}
