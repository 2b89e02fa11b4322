package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The table from how an attempt ended to what follows from it. */
class ShardStatusesTest {
  @Nested
  class Verdicts {
    @ParameterizedTest
    @CsvSource({
      "UNAVAILABLE,,CONNECTION",
      "DEADLINE_EXCEEDED,,CONNECTION",
      "RESOURCE_EXHAUSTED,,OVERLOAD",
      "RESOURCE_EXHAUSTED,quota,OVERLOAD",
      "RESOURCE_EXHAUSTED,gRPC message exceeds maximum size 4194304: 5000000,FINAL",
      "ABORTED,,TRANSIENT",
      "CANCELLED,,TRANSIENT",
      "UNKNOWN,,TRANSIENT",
      "INTERNAL,,FINAL",
      "INTERNAL,disk,FINAL",
      "INTERNAL,upstream: Received RST_STREAM with code 2,TRANSIENT",
      "INTERNAL,received rst stream,TRANSIENT",
      "NOT_FOUND,,MISSING",
      "UNAUTHENTICATED,,UNAUTHENTICATED",
      "PERMISSION_DENIED,,FINAL",
      "INVALID_ARGUMENT,,FINAL"
    })
    @DisplayName("CAS-4 CAS-20 what follows from a status, and from its words where they count")
    void ofStatus(Status.Code code, @Nullable String words, Verdict verdict) {
      Status status = Status.fromCode(code).withDescription(words);
      assertThat(ShardStatuses.of(status.asRuntimeException())).isEqualTo(verdict);
    }

    @Test
    @DisplayName("CAS-20a what is the caller's, this side's and the blob's blames no shard")
    void others() {
      assertThat(ShardStatuses.of(new DeadlineExceededException("read", Deadline.none())))
          .isEqualTo(Verdict.CALLER);
      assertThat(ShardStatuses.of(new WaitedHereException("s0", CallStage.TOKEN, null)))
          .isEqualTo(Verdict.HERE);
      Digest digest = Digest.of(new byte[1]);
      assertThat(ShardStatuses.of(DataLossException.mismatch(digest, digest)))
          .isEqualTo(Verdict.FINAL);
      assertThat(ShardStatuses.of(new IllegalStateException())).isEqualTo(Verdict.FINAL);
      assertThat(Verdict.HERE.kind).isNull();
      assertThat(Verdict.CALLER.kind).isNull();
    }
  }

  @Nested
  class Told {
    @ParameterizedTest
    @CsvSource({
      "false,INTERNAL,reset,UNAVAILABLE,s0 at x: INTERNAL: reset",
      "false,CANCELLED,,UNAVAILABLE,s0 at x: CANCELLED",
      "false,RESOURCE_EXHAUSTED,Connection closed after GOAWAY,UNAVAILABLE,"
          + "s0 at x: RESOURCE_EXHAUSTED: Connection closed after GOAWAY",
      "false,RESOURCE_EXHAUSTED,too large,RESOURCE_EXHAUSTED,s0 at x: too large",
      "false,RESOURCE_EXHAUSTED,,RESOURCE_EXHAUSTED,s0 at x",
      "true,RESOURCE_EXHAUSTED,too many GOAWAYs,RESOURCE_EXHAUSTED,s0 at x: too many GOAWAYs",
      "true,INTERNAL,disk,INTERNAL,s0 at x: disk",
      "true,NOT_FOUND,,NOT_FOUND,s0 at x",
      "true,NOT_FOUND,'',NOT_FOUND,s0 at x",
      "false,NOT_FOUND,HTTP status code 404,UNAVAILABLE,"
          + "s0 at x: HTTP status code 404 (no gRPC server answered)",
      "true,UNIMPLEMENTED,HTTP status code 404,UNAVAILABLE,"
          + "s0 at x: HTTP status code 404 (no gRPC server answered)",
      "false,PERMISSION_DENIED,HTTP status code 403,PERMISSION_DENIED,"
          + "s0 at x: HTTP status code 403 (no gRPC server answered)"
    })
    @DisplayName("CAS-4 the server's word stands; what the transport makes up is UNAVAILABLE")
    void words(
        boolean answered, Status.Code code, @Nullable String said, Status.Code told, String words) {
      IOException cause = new IOException();
      Status status =
          ShardStatuses.told(
              Status.fromCode(code).withDescription(said).withCause(cause), answered, "s0 at x");

      assertThat(status.getCode()).isEqualTo(told);
      assertThat(status.getDescription()).isEqualTo(words);
      assertThat(status.getCause()).isSameAs(cause);
    }
  }

  @Nested
  class Own {
    @Test
    @DisplayName("CAS-32 who waited for the same thing has an error of his own, and the same one")
    void another() {
      Metadata trailers = new Metadata();
      StatusRuntimeException shared =
          Status.UNAVAILABLE.withDescription("gone").asRuntimeException(trailers);
      assertThat(ShardStatuses.own(shared))
          .isNotSameAs(shared)
          .hasMessage("UNAVAILABLE: gone")
          .isInstanceOfSatisfying(
              StatusRuntimeException.class,
              own -> assertThat(own.getTrailers()).isSameAs(trailers));
      WaitedHereException here = new WaitedHereException("s0", CallStage.TOKEN, null);
      assertThat(ShardStatuses.own(here))
          .isNotSameAs(here)
          .isInstanceOf(WaitedHereException.class)
          .hasMessage(here.getMessage());
      Throwable other = new IllegalStateException();
      assertThat(ShardStatuses.own(other)).isSameAs(other);
    }
  }
}
