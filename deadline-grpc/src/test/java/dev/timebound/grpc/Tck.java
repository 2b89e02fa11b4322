package dev.timebound.grpc;

import java.lang.annotation.Annotation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.opentest4j.TestAbortedException;
import org.testng.SkipException;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.Test;

/**
 * Runs a TestNG verification's methods as JUnit tests: surefire's JUnit provider passes TestNG
 * classes over without a word.
 */
final class Tck {
  private Tck() {}

  static Stream<DynamicTest> tests(Object verification) {
    return methods(verification)
        .map(method -> DynamicTest.dynamicTest(method.getName(), () -> run(verification, method)));
  }

  static List<String> failures(Object verification) {
    return methods(verification)
        .filter(method -> fails(verification, method))
        .map(Method::getName)
        .toList();
  }

  private static boolean fails(Object verification, Method method) {
    try {
      run(verification, method);
      return false;
    } catch (TestAbortedException skipped) {
      return false;
    } catch (Throwable red) {
      return true;
    }
  }

  private static Stream<Method> methods(Object verification) {
    return annotated(verification, Test.class).sorted(Comparator.comparing(Method::getName));
  }

  private static Stream<Method> annotated(
      Object verification, Class<? extends Annotation> annotation) {
    return Arrays.stream(verification.getClass().getMethods())
        .filter(method -> method.isAnnotationPresent(annotation));
  }

  private static void run(Object verification, Method method) throws Throwable {
    invokeAll(verification, BeforeClass.class);
    invokeAll(verification, BeforeMethod.class);
    try {
      invoke(verification, method);
    } finally {
      invokeAll(verification, AfterClass.class);
    }
  }

  private static void invokeAll(Object verification, Class<? extends Annotation> annotation)
      throws Throwable {
    for (Method method : annotated(verification, annotation).toList()) {
      invoke(verification, method);
    }
  }

  private static void invoke(Object verification, Method method) throws Throwable {
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
