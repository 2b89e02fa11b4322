package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import org.reactivestreams.tck.PublisherVerification;
import org.reactivestreams.tck.TestEnvironment;
import org.testng.SkipException;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The Reactive Streams TCK over the hand-written operators. Its classes are TestNG's, which
 * surefire's JUnit provider passes over without a word: so each of its methods is called from here.
 */
class TckTest {
  private static final Duration LONG = Duration.ofMinutes(5);

  /** Finite, since the TCK asks for no completion of a publisher without end. */
  private static final long MANY = Integer.MAX_VALUE;

  @TestFactory
  @DisplayName("GR-1 TCK: Flux within")
  Stream<DynamicTest> fluxWithin() {
    return verify(
        () ->
            new Verification(
                MANY,
                n -> items(n).transform(Deadlines.within(LONG)),
                () -> items(3).transform(Deadlines.within(Duration.ZERO))));
  }

  @TestFactory
  @DisplayName("GR-1 TCK: Mono within")
  Stream<DynamicTest> monoWithin() {
    return verify(
        () ->
            new Verification(
                1,
                n -> items(n).next().transform(Deadlines.within(LONG)),
                () -> items(1).next().transform(Deadlines.within(Duration.ZERO))));
  }

  @TestFactory
  @DisplayName("GR-1 TCK: nested Flux within")
  Stream<DynamicTest> nestedWithin() {
    return verify(
        () ->
            new Verification(
                MANY,
                n -> items(n).transform(Deadlines.within(LONG)).transform(Deadlines.within(LONG)),
                () ->
                    items(3)
                        .transform(Deadlines.within(LONG))
                        .transform(Deadlines.within(Duration.ZERO))));
  }

  @TestFactory
  @DisplayName("GR-1 TCK: Flux gapTimeout")
  Stream<DynamicTest> fluxGapTimeout() {
    return verify(
        () ->
            new Verification(
                MANY,
                n -> items(n).transform(Deadlines.gapTimeout(LONG)),
                () ->
                    Flux.<Integer>error(new IllegalStateException())
                        .transform(Deadlines.gapTimeout(LONG))));
  }

  @TestFactory
  @DisplayName("GR-1 TCK: Mono gapTimeout")
  Stream<DynamicTest> monoGapTimeout() {
    return verify(
        () ->
            new Verification(
                1,
                n -> items(n).next().transform(Deadlines.gapTimeout(LONG)),
                () ->
                    Mono.<Integer>error(new IllegalStateException())
                        .transform(Deadlines.gapTimeout(LONG))));
  }

  @TestFactory
  @DisplayName("DL-11 TCK: Mono hedge, with both calls under way")
  Stream<DynamicTest> hedge() {
    RetryBudget all = RetryBudget.builder().share(1).perSecond(1_000_000).build();
    return verify(
        () ->
            new Verification(
                1,
                n ->
                    Mono.delay(Duration.ofMillis(5))
                        .map(Long::intValue)
                        .transform(Deadlines.hedge(Duration.ofMillis(1), all)),
                () ->
                    Mono.<Integer>error(new IllegalStateException())
                        .transform(Deadlines.hedge(LONG, all))));
  }

  @TestFactory
  @DisplayName("DL-12 TCK: concatMapShared")
  Stream<DynamicTest> concatMapShared() {
    return verify(
        () ->
            new Verification(
                MANY,
                n -> {
                  int half = (int) (Math.min(n, MANY) / 2);
                  int rest = (int) (Math.min(n, MANY) - half);
                  return Deadlines.concatMapShared(List.of(half, rest), part -> items(part))
                      .transform(Deadlines.within(LONG));
                },
                () ->
                    Deadlines.concatMapShared(
                        List.of(1), item -> Mono.<Integer>error(new IllegalStateException()))));
  }

  @Test
  @DisplayName("GR-1 the TCK is really run: a publisher that breaks the rules is red")
  void brokenPublisherIsRed() {
    Publisher<Integer> broken =
        subscriber ->
            subscriber.onSubscribe(
                new Subscription() {
                  @Override
                  public void request(long n) {
                    subscriber.onNext(1); // whatever n is, and never an end
                  }

                  @Override
                  public void cancel() {}
                });
    long red =
        verify(() -> new Verification(MANY, n -> broken, () -> broken))
            .filter(
                test ->
                    test.getDisplayName().startsWith("required_spec309")
                        || test.getDisplayName().startsWith("required_spec105"))
            .filter(TckTest::isRed)
            .count();
    assertThat(red).isGreaterThanOrEqualTo(2);
  }

  private static boolean isRed(DynamicTest test) {
    try {
      test.getExecutable().execute();
      return false;
    } catch (org.opentest4j.TestAbortedException e) {
      return false;
    } catch (Throwable e) {
      return true;
    }
  }

  private static Flux<Integer> items(long n) {
    return n > Integer.MAX_VALUE
        ? Flux.<Integer>generate(sink -> sink.next(1)).hide()
        : Flux.range(1, (int) n).hide();
  }

  private static Stream<DynamicTest> verify(Supplier<Verification> verification) {
    Method[] methods =
        Arrays.stream(PublisherVerification.class.getMethods())
            .filter(method -> method.isAnnotationPresent(org.testng.annotations.Test.class))
            .sorted(Comparator.comparing(Method::getName))
            .toArray(Method[]::new);
    assertThat(methods).hasSizeGreaterThan(30);
    return Arrays.stream(methods)
        .map(method -> DynamicTest.dynamicTest(method.getName(), () -> run(verification, method)));
  }

  private static void run(Supplier<Verification> verifications, Method method) throws Throwable {
    Verification verification = verifications.get();
    verification.setUp();
    try {
      method.invoke(verification);
    } catch (InvocationTargetException e) {
      Throwable cause = e.getCause();
      if (cause instanceof SkipException && mayBeSkipped(verification, method, cause)) {
        Assumptions.abort(String.valueOf(cause.getMessage()));
      }
      throw cause;
    }
  }

  /** What the TCK itself calls optional or untestable, and what a Mono is too short for. */
  private static boolean mayBeSkipped(Verification verification, Method method, Throwable skip) {
    String message = String.valueOf(skip.getMessage());
    return !method.getName().startsWith("required_")
        || (verification.maxElementsFromPublisher() == 1 && message.contains("elements"));
  }

  private static final class Verification extends PublisherVerification<Integer> {
    private final long most;
    private final LongFunction<Publisher<Integer>> publisher;
    private final Supplier<Publisher<Integer>> failed;

    Verification(
        long most,
        LongFunction<Publisher<Integer>> publisher,
        Supplier<Publisher<Integer>> failed) {
      super(new TestEnvironment(5_000, 50, 50));
      this.most = most;
      this.publisher = publisher;
      this.failed = failed;
    }

    @Override
    public Publisher<Integer> createPublisher(long elements) {
      return publisher.apply(elements);
    }

    @Override
    public Publisher<Integer> createFailedPublisher() {
      return failed.get();
    }

    @Override
    public long maxElementsFromPublisher() {
      return most;
    }
  }
}
