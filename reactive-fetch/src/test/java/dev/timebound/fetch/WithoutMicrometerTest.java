package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.segments.SegmentStore;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("Micrometer is optional")
class WithoutMicrometerTest {
  /** This project's classes anew, as on a class path that has no Micrometer. */
  private static final class WithoutMicrometer extends ClassLoader {
    WithoutMicrometer() {
      super(WithoutMicrometerTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (name.startsWith("io.micrometer.")) {
        throw new ClassNotFoundException(name);
      }
      if (!name.startsWith("dev.timebound.")) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        Class<?> known = findLoadedClass(name);
        return known != null ? known : define(name);
      }
    }

    private Class<?> define(String name) throws ClassNotFoundException {
      try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
        if (in == null) {
          throw new ClassNotFoundException(name);
        }
        byte[] bytes = in.readAllBytes();
        return defineClass(name, bytes, 0, bytes.length);
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }

  /** Of what the JDK alone knows, so that both sides know it. */
  static final class Fetch implements Callable<Long> {
    @Override
    public Long call() {
      MemoryStore memory = new MemoryStore();
      memory.createTopic("orders", 1);
      TopicPartition partition = new TopicPartition("orders", 0);
      memory.append(partition, ByteBuffer.allocate(10), 1, 1);
      PartitionStore store = BoundedStore.builder(memory, 2).build();
      try (PartitionFetcher fetcher = PartitionFetcher.builder(store).build()) {
        FetchRequest request = FetchRequest.builder().partition(partition, 0).build();
        FetchResponse answer = fetcher.fetch(request).block(Duration.ofSeconds(30));
        return answer == null ? -1 : answer.sizeInBytes();
      }
    }
  }

  /** The same, on disk. */
  static final class Segments implements Callable<Long> {
    @Override
    public Long call() throws IOException {
      Path directory = Files.createTempDirectory("without-micrometer");
      SegmentStore store = SegmentStore.builder(directory).open().block(Duration.ofSeconds(30));
      if (store == null) {
        return -1L;
      }
      TopicPartition partition = new TopicPartition("orders", 0);
      Long end =
          store
              .createTopic("orders", 1)
              .then(store.append(partition, ByteBuffer.allocate(10), 10, 1))
              .then(store.offsets(partition))
              .map(Offsets::highWatermark)
              .block(Duration.ofSeconds(30));
      store.close().block(Duration.ofSeconds(30));
      try (Stream<Path> files = Files.walk(directory)) {
        files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
      }
      return end == null ? -1 : end;
    }
  }

  @ParameterizedTest
  @ValueSource(classes = {Fetch.class, Segments.class})
  @DisplayName("without it a bounded store is fetched from, and one on disk appended to")
  void without(Class<?> use) throws Exception {
    ClassLoader loader = new WithoutMicrometer();
    assertThatThrownBy(() -> loader.loadClass("io.micrometer.observation.Observation"))
        .isInstanceOf(ClassNotFoundException.class);
    Class<?> fetch = loader.loadClass(use.getName());
    assertThat(fetch).isNotSameAs(use);
    Constructor<?> constructor = fetch.getDeclaredConstructor();
    constructor.setAccessible(true);
    assertThat(((Callable<?>) constructor.newInstance()).call()).isEqualTo(10L);
  }
}
