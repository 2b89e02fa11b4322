package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.test.Script;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.util.List;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("Micrometer is optional")
class OptionalMicrometerTest {

  /** This project's classes anew, as on a class path that has no Micrometer. */
  private static final class WithoutMicrometer extends ClassLoader {
    WithoutMicrometer() {
      super(OptionalMicrometerTest.class.getClassLoader());
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
  static final class Calls implements Callable<List<String>> {
    @Override
    public List<String> call() {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().next(Script.start().rows("a", "b").ok());
        reads.client.pingAndWarm().block(Scripted.BOUND);
        return reads.read().awaitComplete();
      }
    }
  }

  @Test
  @DisplayName("without it the client connects, reads, pings and closes")
  void without() throws Exception {
    ClassLoader loader = new WithoutMicrometer();
    assertThatThrownBy(() -> loader.loadClass("io.micrometer.observation.Observation"))
        .isInstanceOf(ClassNotFoundException.class);
    Class<?> calls = loader.loadClass(Calls.class.getName());
    assertThat(calls).isNotSameAs(Calls.class);
    Constructor<?> constructor = calls.getDeclaredConstructor();
    constructor.setAccessible(true);
    assertThat(((Callable<?>) constructor.newInstance()).call()).isEqualTo(List.of("a", "b"));
  }
}
