package dev.timebound.fetch.segments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

@DisplayName("Settings of a store on disk")
class SegmentSettingsTest {
  @TempDir Path directory;

  private static void refused(ThrowingCallable setting, String message) {
    assertThatThrownBy(setting).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  @DisplayName("each is refused at once, with its name, the value, and what was expected")
  void refusals() {
    SegmentStoreBuilder builder = SegmentStore.builder(directory);
    refused(() -> builder.segmentBytes(255), "segmentBytes: 255 (expected: 256..1073741824)");
    refused(() -> builder.indexEvery(0), "indexEvery: 0 (expected: 1..1073741824)");
    refused(() -> builder.threads(0), "threads: 0 (expected: 1..1000)");
    refused(() -> builder.maxOpenFiles(0), "maxOpenFiles: 0 (expected: >= 1)");
    refused(() -> builder.maxMapped(0), "maxMapped: 0 (expected: >= 1)");
    refused(() -> builder.maxWaiting(0), "maxWaiting: 0 (expected: >= 1)");
    refused(() -> Fsync.every(Duration.ZERO), "fsync: PT0S (expected: > 0)");
    refused(() -> Fsync.every(Duration.ofMillis(-1)), "fsync: PT-0.001S (expected: > 0)");
  }

  @Test
  @DisplayName("arguments of calls as well")
  void arguments() {
    SegmentStore store = Stores.open(Stores.small(directory));
    refused(() -> store.createTopic("a", 0), "partitions: 0 (expected: >= 1)");
    refused(() -> store.createTopic(" ", 1), "topic: ' ' (expected: not blank)");
    refused(
        () -> store.createTopic("ü".repeat(50), 1),
        "topic: '" + "ü".repeat(50) + "' (expected: at most 249 bytes in a file's name)");
    refused(
        () -> store.append(Stores.ORDERS, Stores.bytes(0, 1), 0, 1), "records: 0 (expected: >= 1)");
    Stores.close(store);
    Left.noThread();
  }

  @Test
  @DisplayName("a scheduler that was handed in is used, and left open")
  void scheduler() {
    Scheduler io = Schedulers.newBoundedElastic(2, 1000, "their-threads");
    SegmentStore store = Stores.open(Stores.small(directory).scheduler(io));
    Stores.append(store, 10);
    assertThat(Stores.read(store, 0)).hasSize(10);
    Stores.close(store);
    assertThat(io.isDisposed()).isFalse();
    io.schedule(() -> {}, 1, TimeUnit.MILLISECONDS);
    io.dispose();
  }

  @Test
  @DisplayName("a directory that cannot be one is told as the store's error, with its name")
  void noDirectory() throws IOException {
    Path file = Files.createFile(directory.resolve("file"));
    for (Path wrong : List.of(file, file.resolve("below"))) {
      assertThatThrownBy(() -> Stores.open(Stores.small(wrong)))
          .isInstanceOf(SegmentStoreException.class)
          .hasMessageStartingWith(wrong + ": ");
    }
    Left.noThread();
  }

  @Test
  @DisplayName("topics of any name are there when the store is opened anew")
  void names() {
    SegmentStore store = Stores.open(Stores.small(directory));
    String[] names = {"a/b", "..", ".hidden", "+plus", "ä ö*", "per%cent", "a:b\\c"};
    for (String name : names) {
      store.createTopic(name, 2).block(Stores.BOUND);
    }
    Stores.close(store);
    SegmentStore again = Stores.open(Stores.small(directory));
    assertThat(again.partitions()).hasSize(2 * names.length + 1);
    assertThat(again.partitions()).extracting(p -> p.topic()).contains(names);
    Stores.close(again);
    Left.noThread();
  }
}
