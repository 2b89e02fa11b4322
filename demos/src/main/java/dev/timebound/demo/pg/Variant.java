package dev.timebound.demo.pg;

import java.util.function.Function;

/** What the demo puts side by side, in the order in which they run. */
public enum Variant {
  STOCK("r2dbc-pool\nwith a ping", StockClient::connect),
  TIMEBOUND("Timebound", TimeboundClient::connect);

  private final String title;
  private final Function<Servers, ReadWriteClient> connect;

  Variant(String title, Function<Servers, ReadWriteClient> connect) {
    this.title = title;
    this.connect = connect;
  }

  /** Heading of its column; {@code \n} parts its lines. */
  public String title() {
    return title;
  }

  /** Its name on one line. */
  public String label() {
    return title.replace("\n", " ");
  }

  /** Connects, with its pools filled. Blocks. */
  public ReadWriteClient connect(Servers servers) {
    return connect.apply(servers);
  }
}
