package dev.timebound.bigtable;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.RetryInfo;
import dev.timebound.grpc.EndedCall;
import dev.timebound.health.FailureKind;
import dev.timebound.health.QuarantinedException;
import io.grpc.Metadata;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The one table from how an attempt ended to what it says of its channel and whether the read is
 * tried again (HE-2a, BT-4, BT-34).
 *
 * <p>gRPC's code alone cannot tell a reset from a server's own INTERNAL, so some lines look at the
 * description, as Google's clients do; the texts are those of grpc-java's transport.
 */
final class BigtableStatuses {
  private static final Metadata.Key<byte[]> DETAILS =
      Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);
  private static final Metadata.Key<byte[]> RETRY_INFO =
      Metadata.Key.of("google.rpc.retryinfo-bin", Metadata.BINARY_BYTE_MARSHALLER);

  /** What a protobuf Duration may hold at most: 10,000 years. */
  private static final long MAX_SECONDS = 315_576_000_000L;

  private static final Set<Code> FROM_HTTP2 =
      EnumSet.of(
          Code.UNAVAILABLE, Code.INTERNAL, Code.RESOURCE_EXHAUSTED, Code.UNKNOWN, Code.CANCELLED);

  private BigtableStatuses() {}

  /**
   * What follows from how an attempt ended.
   *
   * @param kind what to report of the channel; null: the end says nothing about it
   * @param retryable whether another attempt of a read may mend it; time and attempts left are the
   *     caller's to see
   * @param retryDelay the least wait that the server asked for; null where it asked for none
   */
  record Verdict(
      Line line, @Nullable FailureKind kind, boolean retryable, @Nullable Duration retryDelay) {

    /** Whether the server told when to come back. */
    boolean isTold() {
      return retryDelay != null;
    }

    /** The least wait that the server asked for, 0 where none. */
    long retryDelayNanos() {
      return retryDelay == null ? 0 : BigtableSettings.nanos(retryDelay);
    }
  }

  /** The lines of the table; the first that matches counts. */
  enum Line {
    CALLER_CANCEL(null, false, end -> end.endedBy() == CallEnd.EndedBy.CALLER_CANCEL),
    CALLER_DEADLINE(null, false, end -> end.endedBy() == CallEnd.EndedBy.CALLER_DEADLINE),
    /** The quarantine has already said all there is to say of the channel. */
    QUARANTINE(null, true, end -> isQuarantine(end.status().getCause())),
    GAP_TIMEOUT(FailureKind.CONNECTION, true, end -> end.endedBy() == CallEnd.EndedBy.GAP_TIMEOUT),
    HEADERS_TIMEOUT(
        FailureKind.CONNECTION, true, end -> end.endedBy() == CallEnd.EndedBy.HEADERS_TIMEOUT),
    /** A token could not be fetched, for now: the call never reached the channel. */
    NO_TOKEN_NOW(
        null,
        true,
        end -> own(end, Code.UNAVAILABLE) && begins(end, "Credentials failed to obtain metadata")),
    NO_TOKEN(
        null,
        false,
        end ->
            own(end, Code.UNAUTHENTICATED)
                && (begins(end, "Failed computing credential metadata")
                    || begins(end, "Failed to convert credential metadata"))),
    /** Found by either side; the same message would come again. */
    MESSAGE_TOO_BIG(
        FailureKind.ANSWER,
        false,
        end ->
            is(end, Code.RESOURCE_EXHAUSTED) && begins(end, "gRPC message exceeds maximum size")),
    /** Refused before its headers or cut after them; the code is the GOAWAY's own. */
    GOAWAY(
        FailureKind.CONNECTION,
        true,
        end ->
            !end.isAnswered() && FROM_HTTP2.contains(end.status().getCode()) && has(end, "goaway")),
    RESET(
        FailureKind.CONNECTION,
        true,
        end -> (own(end, Code.INTERNAL) || own(end, Code.CANCELLED)) && tellsOfReset(end)),
    /** The server lives, and tells of a reset behind it. */
    RESET_BEHIND_SERVER(
        FailureKind.OVERLOAD, true, end -> is(end, Code.INTERNAL) && tellsOfReset(end)),
    /** The response stops short, without trailers or within a message. */
    CUT_SHORT(
        FailureKind.CONNECTION,
        true,
        end ->
            own(end, Code.INTERNAL)
                && (begins(end, "Received unexpected EOS on")
                    || begins(end, "Encountered end-of-stream mid-frame"))),
    CONNECTION_BROKE(
        FailureKind.CONNECTION,
        true,
        end ->
            (own(end, Code.INTERNAL) && begins(end, "http2 exception"))
                || (own(end, Code.UNKNOWN) && begins(end, "channel closed"))),
    /** Dropped before it went out: no server has seen it, whatever the transport calls it. */
    UNSENT(
        FailureKind.CONNECTION,
        true,
        end ->
            end.reach() == CallEnd.Reach.UNSENT
                && (is(end, Code.INTERNAL) || is(end, Code.UNKNOWN) || is(end, Code.CANCELLED))),
    HTTP_TOO_MANY_REQUESTS(
        FailureKind.OVERLOAD,
        true,
        end -> own(end, Code.UNAVAILABLE) && begins(end, "HTTP status code 429")),
    UNAVAILABLE(FailureKind.CONNECTION, true, end -> is(end, Code.UNAVAILABLE)),
    RESOURCE_EXHAUSTED(FailureKind.OVERLOAD, false, end -> is(end, Code.RESOURCE_EXHAUSTED)),
    /** The server's own, or made of a bare HTTP 400. */
    INTERNAL(FailureKind.OVERLOAD, false, end -> is(end, Code.INTERNAL)),
    /** Not the caller's deadline: the server's. */
    DEADLINE_EXCEEDED(FailureKind.CONNECTION, true, end -> is(end, Code.DEADLINE_EXCEEDED)),
    /** Nobody here asked for it: as good as a reset. */
    CANCELLED(FailureKind.CONNECTION, true, end -> is(end, Code.CANCELLED)),
    ABORTED(FailureKind.ANSWER, true, end -> is(end, Code.ABORTED)),
    OTHER(FailureKind.ANSWER, false, end -> true);

    final @Nullable FailureKind kind;
    final boolean retryable;

    @SuppressWarnings("ImmutableEnumChecker") // stateless lambdas
    private final Predicate<CallEnd> matches;

    Line(@Nullable FailureKind kind, boolean retryable, Predicate<CallEnd> matches) {
      this.kind = kind;
      this.retryable = retryable;
      this.matches = matches;
    }

    boolean byCaller() {
      return this == CALLER_CANCEL || this == CALLER_DEADLINE;
    }
  }

  private static final Line[] LINES = Line.values();

  /** Looks an end up. A server's RetryInfo makes any line retryable but the caller's own two. */
  static Verdict of(CallEnd end) {
    if (end.status().isOk()) {
      throw new IllegalArgumentException("status: OK (expected: a failure)");
    }
    Line line = line(end);
    Duration delay = line.byCaller() ? null : retryDelay(end.trailers());
    return new Verdict(line, line.kind, line.retryable || delay != null, delay);
  }

  /** For the pool: what a call's end says of its channel. */
  static @Nullable FailureKind kind(EndedCall call) {
    boolean late = call.callersDeadline() && call.status().getCode() == Code.DEADLINE_EXCEEDED;
    CallEnd.EndedBy by = late ? CallEnd.EndedBy.CALLER_DEADLINE : CallEnd.EndedBy.PEER;
    CallEnd.Reach reach = call.answered() ? CallEnd.Reach.ANSWERED : reach(call.sent());
    return line(new CallEnd(call.status(), call.trailers(), by, reach)).kind;
  }

  /**
   * For an attempt that failed with any error.
   *
   * @return null where it is no status: the caller's deadline, a broken stream, a bug
   */
  static @Nullable Verdict of(Throwable failure, CallEnd.EndedBy endedBy, boolean sent) {
    return failure instanceof StatusRuntimeException e
        ? of(new CallEnd(e.getStatus(), e.getTrailers(), endedBy, reach(sent)))
        : null;
  }

  private static CallEnd.Reach reach(boolean sent) {
    return sent ? CallEnd.Reach.SENT : CallEnd.Reach.UNSENT;
  }

  private static Line line(CallEnd end) {
    for (Line line : LINES) {
      if (line.matches.test(end)) {
        return line;
      }
    }
    return Line.OTHER;
  }

  /** The delay of a RetryInfo in the trailers; null where there is none that can be read. */
  static @Nullable Duration retryDelay(@Nullable Metadata trailers) {
    if (trailers == null) {
      return null;
    }
    try {
      byte[] own = trailers.get(RETRY_INFO);
      if (own != null) {
        return delay(RetryInfo.parseFrom(own));
      }
      byte[] details = trailers.get(DETAILS);
      if (details != null) {
        for (Any detail : com.google.rpc.Status.parseFrom(details).getDetailsList()) {
          if (detail.is(RetryInfo.class)) {
            return delay(detail.unpack(RetryInfo.class));
          }
        }
      }
    } catch (InvalidProtocolBufferException malformed) {
      // a broken hint is no hint: the status itself still counts
    }
    return null;
  }

  private static @Nullable Duration delay(RetryInfo info) {
    long seconds = info.getRetryDelay().getSeconds();
    int nanos = info.getRetryDelay().getNanos();
    if (seconds > MAX_SECONDS) {
      return null;
    }
    return seconds < 0 || nanos < 0 ? Duration.ZERO : Duration.ofSeconds(seconds, nanos);
  }

  private static boolean isQuarantine(@Nullable Throwable cause) {
    // bounded: a cause chain may be a circle
    for (int depth = 0; cause != null && depth < 8; depth++, cause = cause.getCause()) {
      if (cause instanceof QuarantinedException) {
        return true;
      }
    }
    return false;
  }

  private static boolean is(CallEnd end, Code code) {
    return end.status().getCode() == code;
  }

  /** A code that this side made up, as far as is known. */
  private static boolean own(CallEnd end, Code code) {
    return is(end, code) && !end.isAnswered();
  }

  private static boolean tellsOfReset(CallEnd end) {
    return has(end, "rst_stream") || has(end, "rst stream");
  }

  private static boolean begins(CallEnd end, String text) {
    String description = end.status().getDescription();
    return description != null && description.startsWith(text);
  }

  private static boolean has(CallEnd end, String lowerCase) {
    String description = end.status().getDescription();
    return description != null && description.toLowerCase(Locale.ROOT).contains(lowerCase);
  }
}
