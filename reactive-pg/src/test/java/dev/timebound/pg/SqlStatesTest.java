package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.spi.R2dbcBadGrammarException;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import io.r2dbc.spi.R2dbcTransientResourceException;
import java.io.IOException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.Exceptions;

@DisplayName("What an error of Postgres says")
class SqlStatesTest {
  /** As Reactor names the one that it wraps errors of windows in. */
  private static final class SourceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    SourceException(Throwable cause) {
      super(cause);
    }
  }

  private static R2dbcException of(String state) {
    return new R2dbcBadGrammarException("refused", state);
  }

  @ParameterizedTest
  @CsvSource({
    "08000, true", "08006, true", "57P01, true", "57P02, true", "57P03, true", "57P05, true",
    "57P04, false", "57014, false", "40001, false", "22012, false", "25P02, false", "53300, false"
  })
  @DisplayName("PG-11 the session is gone, or about to")
  void connection(String state, boolean gone) {
    assertThat(SqlStates.isConnection(of(state))).isEqualTo(gone);
    assertThat(SqlStates.isConnection(new R2dbcNonTransientResourceException("closed", state)))
        .as("what the server says goes before the driver's class")
        .isEqualTo(gone);
  }

  @Test
  @DisplayName("PG-11 without a state the class of the error tells, the driver's or a socket's")
  void connectionByClass() {
    IOException reset = new IOException("Connection reset by peer");
    assertThat(
            new Throwable[] {
              new R2dbcNonTransientResourceException("closed"),
              new R2dbcNonTransientResourceException("closed", "99"),
              new R2dbcTransientResourceException("closed"),
              reset,
              Exceptions.propagate(reset),
              new IllegalStateException(reset)
            })
        .allMatch(SqlStates::isConnection);
    assertThat(
            new Throwable[] {
              new IllegalStateException("closed"),
              new R2dbcBadGrammarException("syntax"),
              new RuntimeException(new IllegalStateException(reset))
            })
        .noneMatch(SqlStates::isConnection);
  }

  @ParameterizedTest
  @CsvSource({
    "40001, READER_CONFLICT",
    "57P04, READER_CONFLICT",
    "57P01, READER_VALIDATION_ERROR",
    "08006, READER_VALIDATION_ERROR",
    "25P02, READER_VALIDATION_ERROR",
    "57014,",
    "42P01,",
    "22012,"
  })
  @DisplayName("PG-12 which reads that brought nothing are tried on the writer, and why")
  void failsOver(String state, RouteReason reason) {
    assertThat(SqlStates.failsOver(of(state))).isEqualTo(reason);
    assertThat(SqlStates.isConflict(of(state))).isEqualTo(reason != null && !state.equals("25P02"));
  }

  @Test
  @DisplayName("PG-12 a refusal by its reason; a conflict may be a broken socket; no other error")
  void failsOverByClass() {
    assertThat(SqlStates.failsOver(new RefusedException(RouteReason.READER_STALE, "stale", null)))
        .isEqualTo(RouteReason.READER_STALE);
    assertThat(SqlStates.failsOver(new IOException("reset")))
        .isEqualTo(RouteReason.READER_VALIDATION_ERROR);
    assertThat(SqlStates.isConflict(new IOException("reset"))).isTrue();
    assertThat(SqlStates.failsOver(new IllegalStateException("a mapper's"))).isNull();
    assertThat(SqlStates.isConflict(new IllegalStateException("a mapper's"))).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "22012, stale", "26000, name", "42P05, name", "25006, readOnly", "25P02, failed",
    "53300, full", "28000, full", "28P01, full", "53200, none", "42P01, none"
  })
  @DisplayName("PG-10 PG-11 each state is one thing only")
  void one(String state, String what) {
    R2dbcException error = of(state);
    assertThat(SqlStates.isStale(error)).isEqualTo(what.equals("stale"));
    assertThat(SqlStates.isStatementName(error)).isEqualTo(what.equals("name"));
    assertThat(SqlStates.isReadOnly(error)).isEqualTo(what.equals("readOnly"));
    assertThat(SqlStates.isFailedTransaction(error)).isEqualTo(what.equals("failed"));
    assertThat(SqlStates.refusesSessions(error)).isEqualTo(what.equals("full"));
  }

  @Test
  @DisplayName("PG-10 whether the server refused a proof, in place of saying nothing")
  void answered() {
    for (Throwable refusal : new Throwable[] {of("22012"), of("42P01")}) {
      assertThat(Verdict.answered(refusal)).isTrue();
      assertThat(Verdict.answered(new UnprovedException(refusal))).isTrue();
    }
    for (Throwable silence :
        new Throwable[] {new TimeoutException(), of("57P01"), new IOException("reset")}) {
      assertThat(Verdict.answered(silence)).isFalse();
      assertThat(Verdict.answered(new UnprovedException(silence))).isFalse();
    }
  }

  @Test
  @DisplayName("what has no state is none of them")
  void none() {
    IllegalStateException none = new IllegalStateException("none");
    assertThat(SqlStates.isStale(none)).isFalse();
    assertThat(SqlStates.isStatementName(none)).isFalse();
    assertThat(SqlStates.isReadOnly(none)).isFalse();
    assertThat(SqlStates.isFailedTransaction(none)).isFalse();
    assertThat(SqlStates.refusesSessions(none)).isFalse();
  }

  @Test
  @DisplayName("of rows in windows the server's own error is told, of nothing else a cause")
  void ofSource() {
    R2dbcException server = of("57P01");
    assertThat(SqlStates.ofSource(new SourceException(server))).isSameAs(server);
    assertThat(SqlStates.ofSource(server)).isSameAs(server);
    Throwable other = new SourceException(new IllegalStateException("a mapper's"));
    assertThat(SqlStates.ofSource(other)).isSameAs(other);
    Throwable wrapped = new IllegalStateException(server);
    assertThat(SqlStates.ofSource(wrapped)).isSameAs(wrapped);
  }

  @Test
  @DisplayName("a missing heartbeat table is told with what makes it")
  void told() {
    assertThat(
            SqlStates.told(
                new R2dbcBadGrammarException(
                    "relation \"" + ProofSql.HEARTBEAT + "\" does not exist", "42P01")))
        .endsWith("; createHeartbeat() makes it, or your migrations");
    assertThat(SqlStates.told(new R2dbcBadGrammarException("relation \"mine\"", "42P01")))
        .doesNotContain("createHeartbeat");
    assertThat(SqlStates.told(new R2dbcBadGrammarException(ProofSql.HEARTBEAT, "42501")))
        .doesNotContain("createHeartbeat");
  }
}
