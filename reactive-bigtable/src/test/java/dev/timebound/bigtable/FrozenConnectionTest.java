package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.BigtableEmulator;
import dev.timebound.test.BigtableTable;
import dev.timebound.test.FaultProxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

/** The main job, on the real emulator behind a proxy that freezes a connection. */
class FrozenConnectionTest {
  private static final int ROWS = 3000;

  @Test
  @DisplayName(
      "BT-10 BT-15 BT-17 BT-31 a frozen connection: its scans go on elsewhere, and it returns when it thaws")
  void scansGoOn() throws Exception {
    BigtableTable table = BigtableEmulator.shared().createFreshTable("frozen", "f");
    ByteString value = ByteString.copyFrom(new byte[1000]);
    table.load(
        IntStream.range(0, ROWS)
            .mapToObj(
                i ->
                    BigtableTable.entry(
                        String.format("row-%05d", i), BigtableTable.cell("f", "q", value))));
    try (FaultProxy proxy = FaultProxy.to("localhost", BigtableEmulator.shared().port());
        BigtableClient client =
            BigtableClient.builder()
                .projectId("timebound")
                .instanceId("test")
                .endpoint("localhost", proxy.port())
                .plaintext(true)
                .pool(pool -> pool.fixedChannels(4))
                .build()) {
      client.pool().warm().block(Duration.ofSeconds(20));
      List<List<String>> seen = new ArrayList<>();
      List<Flux<Row>> scans = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        List<String> keys = new CopyOnWriteArrayList<>();
        seen.add(keys);
        // Read at a steady pace, so that the scans are open when the connection freezes.
        scans.add(
            client
                .readRows(Query.builder(table.id()).build())
                .limitRate(50)
                .concatMap(row -> Flux.just(row).delayElements(Duration.ofMillis(1)), 1)
                .doOnNext(row -> keys.add(row.key().toStringUtf8())));
      }
      CompletableFuture<Void> all = Flux.merge(scans).then().toFuture();
      eventually(() -> assertThat(seen).allMatch(keys -> keys.size() > 200));
      proxy.freezeBusiest();
      eventually(
          () ->
              assertThat(client.pool().channels())
                  .anyMatch(channel -> channel.status() == MemberStatus.QUARANTINED));
      all.get(180, TimeUnit.SECONDS);
      List<String> expected =
          IntStream.range(0, ROWS).mapToObj(i -> String.format("row-%05d", i)).toList();
      assertThat(seen).allSatisfy(keys -> assertThat(keys).isEqualTo(expected));
      assertThat(client.pool().quarantinedCalls()).isPositive();
      proxy.thaw();
      eventually(
          () ->
              assertThat(client.pool().channels())
                  .allMatch(channel -> channel.status() == MemberStatus.HEALTHY));
      eventually(() -> assertThat(client.isIdle()).isTrue());
    }
  }
}
