package dev.timebound.bench;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.timebound.demo.pg.Servers;
import dev.timebound.demo.pg.StockClient;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** HikariCP over pgjdbc, on the caller's thread: for reference. */
final class HikariReader implements PgReader {
  private final HikariDataSource pool;

  HikariReader(Servers servers) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(
        "jdbc:postgresql://127.0.0.1:" + servers.readerPort() + "/" + servers.database());
    config.setUsername(servers.user());
    config.setMaximumPoolSize(StockClient.READERS);
    config.setAutoCommit(false);
    config.setReadOnly(true);
    pool = new HikariDataSource(config);
  }

  @Override
  public String read(int id) throws SQLException {
    try (Connection connection = pool.getConnection();
        PreparedStatement statement = connection.prepareStatement(SELECT + "?")) {
      statement.setInt(1, id);
      String row;
      try (ResultSet result = statement.executeQuery()) {
        row = result.next() ? result.getString(1) : "";
      }
      connection.commit();
      return row;
    }
  }

  @Override
  public void close() {
    pool.close();
  }
}
