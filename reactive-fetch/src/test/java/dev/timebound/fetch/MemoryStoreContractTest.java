package dev.timebound.fetch;

import dev.timebound.fetch.kit.PartitionStoreContract;
import dev.timebound.fetch.kit.StoreUnderTest;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;

@DisplayName("The memory store keeps the contract")
class MemoryStoreContractTest extends PartitionStoreContract {
  @Override
  protected StoreUnderTest open() {
    return new AlmostRight() {}.underTest(Duration.ofSeconds(30));
  }
}
