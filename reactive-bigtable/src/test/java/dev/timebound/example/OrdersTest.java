package dev.timebound.example;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.bigtable.BigtableClient;
import dev.timebound.bigtable.Row;
import dev.timebound.test.BigtableEmulator;
import dev.timebound.test.BigtableEmulatorExtension;
import dev.timebound.test.BigtableTable;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The example of docs/testing.md, as it stands there. */
@ExtendWith(BigtableEmulatorExtension.class)
class OrdersTest {
  @Test
  @DisplayName("the emulator and this client together: the example in the docs")
  void readsAnOrder(BigtableEmulator emulator, BigtableTable table) {
    table.put("order-1", "cf", "total", "12");
    try (BigtableClient client =
        BigtableClient.builder()
            .projectId(BigtableEmulator.PROJECT_ID)
            .instanceId(BigtableEmulator.INSTANCE_ID)
            .endpoint("localhost", emulator.port())
            .plaintext(true)
            .build()) {
      Row row = client.readRow(table.id(), "order-1").block(Duration.ofSeconds(10));
      assertThat(row).isNotNull();
      assertThat(row.first("cf", "total").orElseThrow().value().toStringUtf8()).isEqualTo("12");
    }
  }
}
