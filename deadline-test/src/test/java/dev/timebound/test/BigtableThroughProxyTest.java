package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.protobuf.ByteString;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@Timeout(120)
@ExtendWith(BigtableEmulatorExtension.class)
class BigtableThroughProxyTest {

  @Test
  @DisplayName("a scan of the emulator stalls in a freeze and ends with every row after the thaw")
  void frozenScan(BigtableEmulator emulator) throws Exception {
    BigtableTable table = emulator.createFreshTable("scan", "cf");
    ByteString value = ByteString.copyFrom(new byte[1_000]);
    table.load(
        IntStream.range(0, 3_000)
            .mapToObj(
                i ->
                    BigtableTable.entry(
                        String.format("row-%05d", i), BigtableTable.cell("cf", "q", value))));
    try (FaultProxy proxy = FaultProxy.to("localhost", emulator.port());
        Caller client = new Caller(proxy.hostAndPort())) {
      long whole = count(client, table);
      assertThat(whole).isEqualTo(3_000);
      long passedBefore = proxy.bytesToClient();
      proxy.trickle(500_000);
      CompletableFuture<Long> scan = CompletableFuture.supplyAsync(() -> count(client, table));
      eventually("rows come", () -> proxy.bytesToClient() > passedBefore + 100_000);
      ProxyConnection frozen = proxy.freezeBusiest();
      proxy.fullSpeed();
      long passed = proxy.bytesToClient();
      assertThat(scan).isNotDone();
      assertThat(proxy.bytesToClient()).isEqualTo(passed);
      frozen.thaw();
      assertThat(scan.get(30, TimeUnit.SECONDS)).isEqualTo(3_000);
    }
  }

  @Test
  @DisplayName("a delay is felt by every round trip, a cut by every call")
  void delayAndCut(BigtableEmulator emulator) throws Exception {
    BigtableTable table = emulator.createFreshTable("delay", "cf");
    table.put("a", "cf", "q", "v");
    try (FaultProxy proxy = FaultProxy.to("localhost", emulator.port());
        Caller client = new Caller(proxy.hostAndPort())) {
      count(client, table);
      proxy.delay(Duration.ofMillis(40));
      long start = System.nanoTime();
      assertThat(count(client, table)).isEqualTo(1);
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(Duration.ofMillis(80));
      proxy.freezeAll();
      Caller.Call stalled = client.readRows(1);
      proxy.cut();
      assertThat(stalled.awaitCode()).isEqualTo(Status.Code.UNAVAILABLE);
      proxy.heal();
      eventually("it works again", () -> count(client, table) == 1);
    }
  }

  private static long count(Caller client, BigtableTable table) {
    long[] rows = {0};
    BigtableGrpc.newBlockingStub(client.channel)
        .withWaitForReady()
        .withDeadlineAfter(20, TimeUnit.SECONDS)
        .readRows(ReadRowsRequest.newBuilder().setTableName(table.name()).build())
        .forEachRemaining(
            response ->
                rows[0] += response.getChunksList().stream().filter(c -> c.getCommitRow()).count());
    return rows[0];
  }
}
