package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.FailureKind;
import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@DisplayName("HE-2a what the end of a call says of its channel")
class StandardClassifierTest {
  private static @Nullable FailureKind kind(
      Status.Code code, boolean answered, boolean callersDeadline) {
    return FailureClassifier.standard()
        .classify(new EndedCall(code.toStatus(), new Metadata(), true, answered, callersDeadline));
  }

  @ParameterizedTest(name = "{0}: sent by the server {1}, else {2}")
  @DisplayName("HE-2a by its status, and whether the server sent it")
  @CsvSource({
    "UNAVAILABLE, CONNECTION, CONNECTION",
    "DEADLINE_EXCEEDED, CONNECTION, CONNECTION",
    "RESOURCE_EXHAUSTED, OVERLOAD, OVERLOAD",
    "INTERNAL, OVERLOAD, CONNECTION",
    "CANCELLED, ANSWER, CONNECTION",
    "UNKNOWN, ANSWER, CONNECTION",
    "NOT_FOUND, ANSWER,",
    "PERMISSION_DENIED, ANSWER,",
    "UNAUTHENTICATED, ANSWER,",
    "INVALID_ARGUMENT, ANSWER,",
    "ABORTED, ANSWER,",
  })
  void byStatus(Status.Code code, FailureKind answered, @Nullable FailureKind own) {
    assertThat(kind(code, true, false)).isEqualTo(answered);
    assertThat(kind(code, false, false)).isEqualTo(own);
  }

  @ParameterizedTest(name = "answered: {0}")
  @DisplayName("HE-2a the caller's own deadline says nothing")
  @CsvSource({"true", "false"})
  void callersDeadline(boolean answered) {
    assertThat(kind(Status.Code.DEADLINE_EXCEEDED, answered, true)).isNull();
    assertThat(kind(Status.Code.UNAVAILABLE, answered, true)).isEqualTo(FailureKind.CONNECTION);
  }
}
