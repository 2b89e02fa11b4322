package dev.timebound.bench;

import dev.timebound.demo.Logs;

/**
 * A JVM that serves Kafka's protocol in one of the ways of {@link FetchServer}: {@code server
 * partitions}. Says {@code READY <port> <usage port>}, ends when its standard input does.
 */
final class FetchServerMain {
  private FetchServerMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    FetchServer.Served served = FetchServer.valueOf(args[0]).start(Integer.parseInt(args[1]));
    System.out.println("READY " + served.port() + " " + UsagePort.open());
    while (System.in.read() >= 0) {
      // until the end of the input
    }
    served.end().close();
    System.out.println(Figures.none().with("cpu_ns", Usage.now().cpuNanos()));
    System.exit(0);
  }
}
