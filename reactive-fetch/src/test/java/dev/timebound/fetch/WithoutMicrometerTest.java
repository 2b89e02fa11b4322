package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

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

  @Test
  @DisplayName("without it a bounded store is fetched from")
  void without() throws Exception {
    ClassLoader loader = new WithoutMicrometer();
    assertThatThrownBy(() -> loader.loadClass("io.micrometer.observation.Observation"))
        .isInstanceOf(ClassNotFoundException.class);
    Class<?> fetch = loader.loadClass(Fetch.class.getName());
    assertThat(fetch).isNotSameAs(Fetch.class);
    Constructor<?> constructor = fetch.getDeclaredConstructor();
    constructor.setAccessible(true);
    assertThat(((Callable<?>) constructor.newInstance()).call()).isEqualTo(10L);
  }
}
