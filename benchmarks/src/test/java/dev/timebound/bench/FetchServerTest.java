package dev.timebound.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What the fetch benchmarks stand on: servers in JVMs of their own, and the client that counts. */
class FetchServerTest {
  private static final int PARTITIONS = 2;
  private static final int RECORDS = 3_000;

  @ParameterizedTest
  @EnumSource(
      value = FetchServer.class,
      names = {"KAFKA", "MEMORY", "SEGMENTS"})
  @DisplayName("each server gives the raw client all that was written, and its own CPU time")
  void reads(FetchServer server) throws Exception {
    try (Fork fork =
        Fork.start(
            FetchServerMain.class,
            List.of("-Xmx512m"),
            List.of(server.name(), String.valueOf(PARTITIONS)),
            line -> {})) {
      String[] ports = fork.ready().split(" ");
      int port = Integer.parseInt(ports[0]);
      FetchLoad.fill(port, PARTITIONS, RECORDS);
      Usage before = UsagePort.ask(Integer.parseInt(ports[1]));
      long[] ends = IntStream.range(0, PARTITIONS).mapToLong(i -> RECORDS).toArray();
      try (RawFetch client = new RawFetch(port, FetchLoad.TOPIC)) {
        RawFetch.Totals first = client.readAll(ends);
        assertThat(first.bytes())
            .isBetween(
                (long) PARTITIONS * RECORDS * (FetchLoad.RECORD_BYTES - 12),
                (long) PARTITIONS * RECORDS * (FetchLoad.RECORD_BYTES + 100));
        // batches of 16 KiB, full ones but for a few
        assertThat(first.batches())
            .isBetween(PARTITIONS * RECORDS / 16L, PARTITIONS * RECORDS / 12L);
        RawFetch.Totals again = client.readAll(ends);
        assertThat(again.bytes()).isEqualTo(first.bytes());
        assertThat(again.batches()).isEqualTo(first.batches());

        assertThatThrownBy(() -> client.readAll(0, 0, 1)).hasMessage("partition 2: error 3");
      }
      Usage used = UsagePort.ask(Integer.parseInt(ports[1])).since(before);
      assertThat(used.cpuNanos()).isNotNegative();
      assertThat(used.wallNanos()).isPositive();
      assertThat(fork.stop().get("cpu_ns")).isPositive();
    }
  }

  @Test
  @DisplayName("of a stalled partition nothing comes, of the one beside it all does")
  void stalled() throws Exception {
    FetchServer.Served served = FetchServer.STALLED.start(2);
    try (RawFetch client = new RawFetch(served.port(), FetchLoad.TOPIC)) {
      FetchLoad.fill(served.port(), new int[] {1, 100});
      assertThat(client.readOnce(2).batches()).isPositive();
      RawFetch.Totals totals = client.readAll(RawFetch.FOLLOWED, 100);
      assertThat(totals.bytes()).isBetween(100L * 1000, 100L * 1100);
      assertThat(totals.requests()).isOne();
    } finally {
      served.end().close();
    }
  }

  @Test
  @DisplayName("a partition that brings nothing is an error, not an endless read")
  void nothing() throws Exception {
    FetchServer.Served served = FetchServer.MEMORY.start(1);
    try (RawFetch client = new RawFetch(served.port(), FetchLoad.TOPIC)) {
      assertThatThrownBy(() -> client.readAll(1)).hasMessageContaining("at [0]");
    } finally {
      served.end().close();
    }
  }

  @Test
  @DisplayName("a server that is gone is an error, not an endless read")
  void gone() throws Exception {
    FetchServer.Served served = FetchServer.MEMORY.start(1);
    try (RawFetch client = new RawFetch(served.port(), FetchLoad.TOPIC)) {
      served.end().close();
      assertThatThrownBy(() -> client.readAll(1)).isInstanceOf(java.io.IOException.class);
    }
  }
}
