package dev.timebound.samples.kafka;

/**
 * Ends the connection, with a line in the log: what came is no request that this server takes, or
 * there is no other way to tell the client that it failed.
 */
final class ConnectionEndedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ConnectionEndedException(String message) {
    super(message);
  }

  ConnectionEndedException(String message, Throwable cause) {
    super(message, cause);
  }
}
