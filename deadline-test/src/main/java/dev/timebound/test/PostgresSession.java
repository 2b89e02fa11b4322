package dev.timebound.test;

/**
 * A client's session on a {@link PostgresServer}, as the server saw it when it was asked.
 *
 * @param pid the process that serves it, as {@code pg_terminate_backend} wants it
 * @param applicationName what the client calls itself
 * @param state {@code active}, {@code idle}, {@code idle in transaction}, {@code idle in
 *     transaction (aborted)}, or empty
 * @param waitEvent what it waits for ({@code ClientRead}, {@code PgSleep}, {@code relation} …), or
 *     empty
 * @param query its statement if it is active, else its last one
 * @param clientPort the client's port, by which a connection through a proxy can be told; -1 for
 *     none
 */
public record PostgresSession(
    int pid, String applicationName, String state, String waitEvent, String query, int clientPort) {

  /** Whether a transaction is open and no statement runs in it. */
  public boolean isIdleInTransaction() {
    return state.startsWith("idle in transaction");
  }

  /** Whether a statement runs. */
  public boolean isRunning() {
    return state.equals("active");
  }
}
