package dev.timebound.bigtable;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.opentest4j.TestAbortedException;
import org.reactivestreams.tck.PublisherVerification;
import org.testng.SkipException;
import org.testng.annotations.Test;

/**
 * Runs a TestNG verification's methods as JUnit tests: surefire's JUnit provider passes TestNG
 * classes over without a word.
 */
final class Tck {
  private Tck() {}

  static Stream<DynamicTest> tests(PublisherVerification<?> verification) {
    return methods(verification)
        .map(method -> DynamicTest.dynamicTest(method.getName(), () -> run(verification, method)));
  }

  static List<String> failures(PublisherVerification<?> verification) {
    return methods(verification)
        .filter(method -> fails(verification, method))
        .map(Method::getName)
        .toList();
  }

  private static boolean fails(PublisherVerification<?> verification, Method method) {
    try {
      run(verification, method);
      return false;
    } catch (TestAbortedException skipped) {
      return false;
    } catch (Throwable red) {
      return true;
    }
  }

  private static Stream<Method> methods(PublisherVerification<?> verification) {
    return Arrays.stream(verification.getClass().getMethods())
        .filter(method -> method.isAnnotationPresent(Test.class))
        .sorted(Comparator.comparing(Method::getName));
  }

  private static void run(PublisherVerification<?> verification, Method method) throws Throwable {
    verification.setUp();
    try {
      method.setAccessible(true);
      method.invoke(verification);
    } catch (InvocationTargetException e) {
      Throwable cause = e.getCause();
      if (cause instanceof SkipException) {
        throw new TestAbortedException(cause.getMessage());
      }
      throw cause == null ? e : cause;
    }
  }
}
