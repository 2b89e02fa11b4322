package dev.timebound.demo.bigtable;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.ProxyConnection;
import java.util.Comparator;
import org.jspecify.annotations.Nullable;

/** A {@link Line} through a {@link FaultProxy}. */
final class ProxyLine implements Line {
  private final FaultProxy proxy;

  ProxyLine(FaultProxy proxy) {
    this.proxy = proxy;
  }

  @Override
  public int open() {
    return (int)
        proxy.connections().stream()
            .filter(connection -> connection.state() != ProxyConnection.State.CLOSED)
            .count();
  }

  @Override
  public @Nullable Stalled stallBusiest() {
    ProxyConnection busiest =
        proxy.connections().stream()
            .filter(connection -> connection.state() == ProxyConnection.State.OPEN)
            .max(Comparator.comparingLong(ProxyConnection::recentBytes))
            .orElse(null);
    if (busiest == null || busiest.recentBytes() == 0) {
      return null;
    }
    long carried = busiest.recentBytes();
    busiest.freeze();
    return new StalledConnection(busiest, carried);
  }

  private record StalledConnection(ProxyConnection connection, long carried) implements Stalled {
    @Override
    public String what() {
      return "connection "
          + connection.id()
          + ", which carried "
          + (carried >> 10)
          + " KiB in the last second";
    }

    @Override
    public boolean holds() {
      return connection.state() == ProxyConnection.State.FROZEN;
    }

    @Override
    public void thaw() {
      connection.thaw();
    }
  }
}
