package dev.timebound.bench;

import dev.timebound.demo.pg.ReadWriteClient;
import dev.timebound.demo.pg.Servers;
import dev.timebound.demo.pg.StockClient;
import dev.timebound.demo.pg.TimeboundClient;
import io.r2dbc.spi.Connection;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The contestants of the reads. */
enum PgMode {
  STOCK_PING("r2dbc-pool, ping, transaction", servers -> of(StockClient.connect(servers))),
  TIMEBOUND_PROVED("Timebound, fence", servers -> of(TimeboundClient.connect(servers))),
  STOCK_PLAIN("r2dbc-pool, transaction", servers -> of(StockClient.withoutValidation(servers))),
  TIMEBOUND_PLAIN("Timebound, no fence", servers -> of(TimeboundClient.withoutFence(servers))),
  HIKARI("HikariCP, transaction", HikariReader::new);

  private final String title;
  private final Function<Servers, PgReader> connect;

  PgMode(String title, Function<Servers, PgReader> connect) {
    this.title = title;
    this.connect = connect;
  }

  String title() {
    return title;
  }

  PgReader connect(Servers servers) {
    return connect.apply(servers);
  }

  private static PgReader of(ReadWriteClient client) {
    return new PgReader() {
      @Override
      public String read(int id) {
        return String.valueOf(client.reading(c -> row(c, id)).block());
      }

      @Override
      public void close() {
        client.close();
      }
    };
  }

  private static Mono<String> row(Connection connection, int id) {
    return Flux.from(connection.createStatement(PgReader.SELECT + "$1").bind(0, id).execute())
        .concatMap(result -> result.map((row, metadata) -> String.valueOf(row.get(0))))
        .singleOrEmpty();
  }
}
