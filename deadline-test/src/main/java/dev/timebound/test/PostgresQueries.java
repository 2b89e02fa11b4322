package dev.timebound.test;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.jspecify.annotations.Nullable;
import org.postgresql.Driver;

/** The kit's own way into a server, beside whatever is under test: JDBC, one round trip a call. */
final class PostgresQueries {
  /** What the kit's own sessions are called; no list shows them. */
  static final String APPLICATION = "timebound-test-kit";

  private final String url;
  private final ConcurrentLinkedDeque<Connection> idle = new ConcurrentLinkedDeque<>();

  PostgresQueries(String url) {
    this.url = url;
  }

  interface Use<T> {
    T with(PreparedStatement statement) throws SQLException;
  }

  List<Map<String, @Nullable Object>> query(String sql, @Nullable Object... arguments) {
    return use(
        sql,
        arguments,
        statement -> {
          List<Map<String, @Nullable Object>> rows = new ArrayList<>();
          try (ResultSet result = statement.executeQuery()) {
            ResultSetMetaData columns = result.getMetaData();
            while (result.next()) {
              Map<String, @Nullable Object> row = new LinkedHashMap<>();
              for (int i = 1; i <= columns.getColumnCount(); i++) {
                String label = columns.getColumnLabel(i);
                if (row.containsKey(label)) {
                  throw new IllegalStateException(
                      sql + " has two columns " + label + " (expected: labels of their own)");
                }
                row.put(label, result.getObject(i));
              }
              rows.add(row);
            }
          }
          return rows;
        });
  }

  int execute(String sql, @Nullable Object... arguments) {
    return use(
        sql,
        arguments,
        statement -> statement.execute() ? 0 : Math.max(0, statement.getUpdateCount()));
  }

  /** A connection of the caller's own, in autocommit. */
  Connection connect(String application) throws SQLException {
    Properties properties = new Properties();
    properties.setProperty("user", PostgresServer.USER);
    properties.setProperty("sslmode", "disable");
    properties.setProperty("ApplicationName", application);
    properties.setProperty("connectTimeout", "10");
    properties.setProperty("socketTimeout", "60");
    Connection connection = new Driver().connect(url, properties);
    if (connection == null) {
      throw new SQLException("not the driver's: " + url);
    }
    return connection;
  }

  /** Forgets the connections it kept: the server went. */
  void close() {
    for (Connection connection = idle.poll(); connection != null; connection = idle.poll()) {
      closeQuietly(connection);
    }
  }

  private <T> T use(String sql, @Nullable Object[] arguments, Use<T> use) {
    try {
      Connection connection = idle.poll();
      if (connection == null || !connection.isValid(5)) {
        connection = connect(APPLICATION);
      }
      T result;
      try (PreparedStatement statement = connection.prepareStatement(sql)) {
        for (int i = 0; i < arguments.length; i++) {
          statement.setObject(i + 1, arguments[i]);
        }
        result = use.with(statement);
      } catch (SQLException | RuntimeException e) {
        closeQuietly(connection);
        throw e;
      }
      idle.push(connection);
      return result;
    } catch (SQLException e) {
      throw new IllegalStateException(sql + " failed: " + e.getMessage(), e);
    }
  }

  private static void closeQuietly(Connection connection) {
    try {
      connection.close();
    } catch (SQLException e) {
      // it is broken, which is why it is closed
    }
  }
}
