package dev.timebound.bench;

import java.io.IOException;
import java.util.List;

/** A {@link FetchServer} that runs in a JVM of its own; closing it ends it. */
record FetchFork(Fork fork, int port, int usagePort) implements AutoCloseable {

  static FetchFork start(FetchServer server, int partitions) throws Exception {
    Fork fork =
        Fork.start(
            FetchServerMain.class,
            server.options(),
            List.of(server.name(), String.valueOf(partitions)),
            line -> {});
    try {
      String[] ports = fork.ready().split(" ");
      return new FetchFork(fork, Integer.parseInt(ports[0]), Integer.parseInt(ports[1]));
    } catch (Exception e) {
      fork.close();
      throw e;
    }
  }

  /** What its process has used so far. */
  Usage usage() throws IOException {
    return UsagePort.ask(usagePort);
  }

  @Override
  public void close() throws IOException, InterruptedException {
    fork.close();
  }
}
