package dev.timebound.demo.bigtable;

import dev.timebound.test.FaultProxy;
import java.io.PrintStream;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Puts one client after the other through the same load and the same stall: a proxy of its own in
 * front of the server, with the delay of a network, and a fresh client.
 */
public final class StallTrial {
  /** One way: a round trip takes 10 ms more, as to a server in another zone, and its work. */
  public static final Duration DELAY = Duration.ofMillis(5);

  private final Target server;
  private final DemoTable table;
  private final LoadPlan plan;
  private final Phases phases;
  private final PrintStream out;

  /**
   * @param server the server itself; clients are pointed at the proxy
   * @param table what stands in it
   * @param out gets a line a second
   */
  public StallTrial(Target server, DemoTable table, LoadPlan plan, Phases phases, PrintStream out) {
    this.server = server;
    this.table = table;
    this.plan = plan;
    this.phases = phases;
    this.out = out;
  }

  /**
   * A run that counts for nothing: the load without a stall, for some seconds, told nowhere. The
   * first of several clients in one JVM would otherwise pay for the compiling of what all of them
   * share.
   */
  public void rehearse(Variant variant, int seconds) throws Exception {
    try (FaultProxy proxy = FaultProxy.to("localhost", server.port())) {
      proxy.delay(DELAY);
      try (ReadClient client = variant.connect(through(proxy));
          ReadLoad load = new ReadLoad(client, table, plan)) {
        load.start();
        TimeUnit.SECONDS.sleep(seconds);
        load.finish(Duration.ofSeconds(10));
      }
    }
  }

  private Target through(FaultProxy proxy) {
    return new Target(proxy.port(), server.project(), server.instance(), server.table());
  }

  /** Runs one variant to its end; blocks for as long as the phases say, and a bit. */
  public StallReport run(Variant variant) throws Exception {
    try (FaultProxy proxy = FaultProxy.to("localhost", server.port())) {
      proxy.delay(DELAY);
      try (ReadClient client = variant.connect(through(proxy))) {
        return new StallRun(client, new ProxyLine(proxy), table, plan, phases, out).run();
      }
    }
  }
}
