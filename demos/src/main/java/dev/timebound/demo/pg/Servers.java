package dev.timebound.demo.pg;

import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;

/**
 * Where a client connects to.
 *
 * @param application what its sessions are called, by which the servers' sessions are told apart
 */
public record Servers(
    int writerPort, int readerPort, String user, String database, String application) {

  PostgresqlConnectionConfiguration.Builder writer() {
    return to(PostgresqlConnectionConfiguration.builder(), writerPort);
  }

  PostgresqlConnectionConfiguration.Builder reader() {
    return reader(PostgresqlConnectionConfiguration.builder());
  }

  PostgresqlConnectionConfiguration.Builder reader(
      PostgresqlConnectionConfiguration.Builder config) {
    return to(config, readerPort);
  }

  private PostgresqlConnectionConfiguration.Builder to(
      PostgresqlConnectionConfiguration.Builder config, int port) {
    return config
        .host("127.0.0.1")
        .port(port)
        .username(user)
        .database(database)
        .applicationName(application);
  }
}
