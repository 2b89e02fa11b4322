package dev.timebound.pg;

import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import io.r2dbc.spi.R2dbcTransientResourceException;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import reactor.core.Exceptions;

/** What an error of Postgres says: one table. (HE-2a, PG-11, PG-12) */
final class SqlStates {
  private static final String DIVISION_BY_ZERO = "22012";
  private static final String READ_ONLY_TRANSACTION = "25006";
  private static final String TOO_MANY_CONNECTIONS = "53300";
  private static final String NO_AUTH = "28";
  private static final String UNDEFINED_TABLE = "42P01";
  private static final String FAILED_TRANSACTION = "25P02";

  private static final String UNKNOWN_STATEMENT = "26000";
  private static final String DUPLICATE_STATEMENT = "42P05";

  private SqlStates() {}

  /** The error that ends a proof whose fence does not hold: a division by zero made on purpose. */
  static boolean isStale(Throwable e) {
    return DIVISION_BY_ZERO.equals(state(e));
  }

  /** The server does not know a prepared statement's name, or knows another one by it. */
  static boolean isStatementName(Throwable e) {
    String state = state(e);
    return UNKNOWN_STATEMENT.equals(state) || DUPLICATE_STATEMENT.equals(state);
  }

  static boolean isReadOnly(Throwable e) {
    return READ_ONLY_TRANSACTION.equals(state(e));
  }

  static boolean isFailedTransaction(Throwable e) {
    return FAILED_TRANSACTION.equals(state(e));
  }

  /**
   * The session is gone, or about to: no answer to what was asked. 57P01 to 57P03 are a server that
   * shuts down, crashes or starts; 57P05 an idle session's timeout.
   */
  static boolean isConnection(Throwable e) {
    String state = state(e);
    if (state != null && state.length() == 5) {
      return state.startsWith("08") || state.startsWith("57P") && !state.equals("57P04");
    }
    Throwable own = Exceptions.unwrap(e);
    return own instanceof R2dbcNonTransientResourceException
        || own instanceof R2dbcTransientResourceException
        || own instanceof IOException
        || own.getCause() instanceof IOException;
  }

  /**
   * A server that is up takes no session more: it has as many as it may, or the credentials are
   * none any more. Those it has go on.
   */
  static boolean refusesSessions(Throwable e) {
    String state = state(e);
    return state != null && (state.equals(TOO_MANY_CONNECTIONS) || state.startsWith(NO_AUTH));
  }

  /**
   * A replica ended the statement for its own recovery's sake: worth another try elsewhere. 40001
   * of a read-only statement can be nothing else. (PG-12)
   */
  static boolean isConflict(Throwable e) {
    String state = state(e);
    return state != null && (state.equals("40001") || state.startsWith("57P0")) || isConnection(e);
  }

  /**
   * What a result's rows really ended with: Reactor wraps the error of a source that was cut into
   * windows, and the driver cuts the results of a statement with parameters that way.
   */
  static Throwable ofSource(Throwable e) {
    Throwable cause = e.getCause();
    return cause instanceof R2dbcException && e.getClass().getName().endsWith("$SourceException")
        ? cause
        : e;
  }

  /**
   * Why a first statement that has brought nothing is tried on the writer; null where it is not.
   */
  static @Nullable RouteReason failsOver(Throwable e) {
    if (e instanceof RefusedException refused) {
      return refused.reason();
    }
    if (isConnection(e) || isFailedTransaction(e)) {
      return RouteReason.READER_VALIDATION_ERROR;
    }
    return isConflict(e) ? RouteReason.READER_CONFLICT : null;
  }

  /** For a log line: a missing heartbeat table is the first that everyone meets. */
  static String told(Throwable e) {
    return UNDEFINED_TABLE.equals(state(e)) && e.toString().contains(ProofSql.HEARTBEAT)
        ? e + "; createHeartbeat() makes it, or your migrations"
        : e.toString();
  }

  private static @Nullable String state(Throwable e) {
    // what ends a connection ends its result too, and comes wrapped by Reactor there
    return Exceptions.unwrap(e) instanceof R2dbcException r2dbc ? r2dbc.getSqlState() : null;
  }
}
