package dev.timebound.samples.kafka.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.samples.kafka.group.OffsetStore.Committed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@DisplayName("Offsets of groups in files")
class FileOffsetStoreTest {
  private static final Duration BOUND = Duration.ofSeconds(30);
  private static final TopicPartition ONE = new TopicPartition("t", 1);
  private static final TopicPartition TWO = new TopicPartition("u", 2);

  @TempDir Path root;
  private FileOffsetStore store = new FileOffsetStore(Path.of("none"));

  private void open() {
    store.close().block(BOUND);
    store = new FileOffsetStore(root.resolve("groups"));
  }

  @AfterEach
  void nothingIsLeft() {
    store.close().block(BOUND);
    store.close().block(BOUND);
    long end = System.nanoTime() + BOUND.toNanos();
    while (threads() > 0 && System.nanoTime() - end < 0) {
      Thread.onSpinWait();
    }
    assertThat(threads()).isZero();
  }

  private static long threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("kafka-group-offsets"))
        .count();
  }

  private static Committed at(long offset) {
    return new Committed(offset, 3, "so far");
  }

  private Map<TopicPartition, Committed> committed(String group) {
    return Objects.requireNonNull(store.committed(group).block(BOUND));
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(root.resolve("groups"))) {
      return files.toList();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"g", "", "../up", "a/b ä", "long"})
  @DisplayName("outlive the process, the last one of each partition; of any group")
  void kept(String name) {
    String group = name.equals("long") ? "x".repeat(1_000) : name;
    open();
    assertThat(committed(group)).isEmpty();
    store.commit(group, Map.of(ONE, at(5), TWO, at(7))).block(BOUND);
    store.commit(group, Map.of(ONE, at(6))).block(BOUND);
    open();
    assertThat(committed(group)).isEqualTo(Map.of(ONE, at(6), TWO, at(7)));
    assertThat(committed(group + "2")).isEmpty();
  }

  @Test
  @DisplayName("many at once: none undoes another, and those that were given up are done or not")
  void atOnce() {
    open();
    Map<TopicPartition, Committed> wanted = new HashMap<>();
    for (int i = 0; i < 50; i++) {
      wanted.put(new TopicPartition("t", i), at(i));
    }
    Flux.fromIterable(wanted.entrySet())
        .flatMap(each -> store.commit("g", Map.of(each.getKey(), each.getValue())), 50)
        .blockLast(BOUND);
    assertThat(committed("g")).isEqualTo(wanted);
    for (int i = 0; i < 50; i++) {
      store.commit("g", Map.of(ONE, at(100 + i))).subscribe().dispose();
    }
    assertThat(committed("g").get(ONE)).as("no file was closed under it").isEqualTo(at(149));
  }

  @Test
  @DisplayName("a crash in a commit leaves what was there")
  void crashed() throws IOException {
    open();
    store.commit("g", Map.of(ONE, at(5))).block(BOUND);
    Path file = files().get(0);
    Files.write(file.resolveSibling(file.getFileName() + ".new"), new byte[] {1, 2, 3});
    open();
    assertThat(committed("g")).isEqualTo(Map.of(ONE, at(5)));
    store.commit("g", Map.of(ONE, at(6))).block(BOUND);
    assertThat(committed("g")).isEqualTo(Map.of(ONE, at(6)));
    assertThat(files()).hasSize(1);
  }

  @Test
  @DisplayName("a damaged file is an error that names it, of its group alone; none begins anew")
  void damaged() throws IOException {
    open();
    store.commit("g", Map.of(ONE, at(5))).block(BOUND);
    Path file = files().get(0);
    byte[] whole = Files.readAllBytes(file);
    for (int at = 0; at < whole.length; at++) {
      byte[] turned = whole.clone();
      turned[at] ^= 1;
      Files.write(file, turned);
      refused(store.committed("g"), file);
      refused(store.commit("g", Map.of(TWO, at(1))), file);
      assertThat(committed("other")).isEmpty();
    }
    Files.write(file, new byte[2]);
    refused(store.committed("g"), file);
    store.commit("other", Map.of(ONE, at(1))).block(BOUND);
    Path other = files().stream().filter(each -> !each.equals(file)).findFirst().orElseThrow();
    Files.copy(other, file, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
    refused(store.committed("g"), file);
  }

  private static void refused(Mono<?> call, Path file) {
    assertThatThrownBy(() -> call.block(BOUND))
        .hasMessageContaining(file.toString())
        .hasMessageContaining("(expected: ");
  }
}
