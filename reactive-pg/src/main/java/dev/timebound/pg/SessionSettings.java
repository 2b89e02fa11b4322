package dev.timebound.pg;

import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.postgresql.api.PostgresqlResult;
import io.r2dbc.spi.R2dbcException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * What a reader's sessions are set to, and how: in the startup packet, which overrides the defaults
 * of database and role and costs no round trip; or, where what is in between refuses that, by
 * statements after connecting. What a reader was found to refuse is remembered for its later dials.
 * (PG-18)
 */
final class SessionSettings {
  private static final Logger LOG = LoggerFactory.getLogger(ReaderPool.class);

  private static final Duration IDLE_IN_TRANSACTION = Duration.ofSeconds(10);

  /** How often a server looks whether the client of a statement that runs is still there. */
  private static final Duration CLIENT_CHECK = Duration.ofMillis(500);

  private final String reader;
  private volatile Plan plan;

  SessionSettings(String reader, Duration statementTimeout) {
    this.reader = reader;
    Map<String, String> values = new LinkedHashMap<>();
    // a statement that is prepared outside a transaction block is not to inherit REPEATABLE READ
    values.put("default_transaction_isolation", "read committed");
    values.put("default_transaction_read_only", "on");
    values.put("statement_timeout", Long.toString(ProofSql.timeout(statementTimeout.toMillis())));
    values.put(
        "idle_in_transaction_session_timeout", Long.toString(IDLE_IN_TRANSACTION.toMillis()));
    values.put("client_connection_check_interval", Long.toString(CLIENT_CHECK.toMillis()));
    this.plan = new Plan(values, false);
  }

  /** How the next dial is made. */
  Plan plan() {
    return plan;
  }

  /**
   * Takes in why a dial that was made by that plan failed.
   *
   * @return whether it is worth to dial again at once, by another plan
   */
  boolean learn(Plan tried, Throwable failure) {
    String state = failure instanceof R2dbcException r2dbc ? r2dbc.getSqlState() : null;
    if (state == null || tried.startup().isEmpty()) {
      return false;
    }
    String message = Objects.toString(failure.getMessage(), "");
    String named = tried.named(message);
    switch (state) {
      case "08P01", "0A000" -> {
        // a pooler: it passes on no settings, or only those it knows
        if (named == null && !message.contains("startup") && !message.contains("option")) {
          return false;
        }
        adopt(
            new Plan(tried.values(), true),
            named == null ? "settings" : named,
            "all settings are set after connecting from now on",
            message);
        return true;
      }
      case "42704", "22023", "42501" -> {
        if (named == null) {
          return false;
        }
        adopt(tried.without(named), named, "it is left out from now on", message);
        return true;
      }
      default -> {
        return false;
      }
    }
  }

  /** Sets what the startup packet did not. One that the server does not take is left out. */
  Mono<Void> afterConnecting(Plan used, PostgresqlConnection connection) {
    if (!used.after()) {
      return Mono.empty();
    }
    List<Mono<Void>> statements = new ArrayList<>();
    used.values()
        .forEach(
            (name, value) ->
                statements.add(
                    connection
                        .createStatement("SET " + name + " = '" + value + "'")
                        .execute()
                        .flatMap(PostgresqlResult::getRowsUpdated)
                        .then()
                        .onErrorResume(
                            R2dbcException.class, refused -> leaveOut(used, name, refused))));
    return Flux.concat(statements).then();
  }

  private Mono<Void> leaveOut(Plan used, String name, R2dbcException refused) {
    if (refused.getSqlState() == null || refused.getSqlState().startsWith("08")) {
      return Mono.error(refused); // the connection is gone
    }
    String message = Objects.toString(refused.getMessage(), "");
    adopt(plan.without(name), name, "it is left out from now on", message);
    return Mono.empty();
  }

  /** Told once: of dials that are refused together the first one speaks. */
  private synchronized void adopt(Plan next, String parameter, String remedy, String message) {
    Plan merged = plan.and(next);
    if (!merged.equals(plan)) {
      plan = merged;
      LOG.warn(
          "reader {}: the server refuses to set {}: {}; {}", reader, parameter, message, remedy);
    }
  }

  /**
   * How a dial is made.
   *
   * @param values the settings, by name
   * @param after whether they are set after connecting, else in the startup packet
   */
  record Plan(Map<String, String> values, boolean after) {
    Plan {
      values = Map.copyOf(values);
    }

    Map<String, String> startup() {
      return after ? Map.of() : values;
    }

    Plan without(String name) {
      Map<String, String> rest = new LinkedHashMap<>(values);
      rest.remove(name);
      return new Plan(rest, after);
    }

    /** What both would set, the careful way if either is. */
    Plan and(Plan other) {
      Map<String, String> both = new LinkedHashMap<>(values);
      both.keySet().retainAll(other.values.keySet());
      return new Plan(both, after || other.after);
    }

    @Nullable String named(String message) {
      for (String name : values.keySet()) {
        if (message.contains(name)) {
          return name;
        }
      }
      return null;
    }
  }
}
