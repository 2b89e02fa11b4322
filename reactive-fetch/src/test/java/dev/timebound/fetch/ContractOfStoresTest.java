package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import dev.timebound.fetch.kit.PartitionStoreContract;
import dev.timebound.fetch.kit.StoreUnderTest;
import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

@DisplayName("The contract of stores, as tests, finds a store that does not keep it")
class ContractOfStoresTest {
  /** As a store's author would write it; run from here alone. */
  static final class OfOne extends PartitionStoreContract {
    static volatile Supplier<StoreUnderTest> store =
        () -> {
          throw new IllegalStateException("no store to test");
        };

    @Override
    protected StoreUnderTest open() {
      return store.get();
    }
  }

  private final Launcher launcher =
      LauncherFactory.create(
          LauncherConfig.builder().enableTestExecutionListenerAutoRegistration(false).build());

  @ParameterizedTest
  @EnumSource
  @DisplayName("each fault is told by the tests that are there for it")
  void told(Faults fault) {
    assertThat(red(() -> fault.store().underTest(Duration.ofSeconds(2)), fault.tests::contains))
        .isEqualTo(fault.tests);
  }

  @Test
  @DisplayName("no test is there that no store could fail, and none that a good one fails")
  void allOfThem() {
    Set<String> ran = new TreeSet<>();
    Set<String> red =
        red(() -> new AlmostRight() {}.underTest(Duration.ofSeconds(30)), test -> ran.add(test));
    assertThat(red).isEmpty();
    assertThat(ran)
        .hasSizeGreaterThan(20)
        .allSatisfy(
            test ->
                assertThat(Arrays.stream(Faults.values()).filter(f -> f.tests.contains(test)))
                    .as("stores that fail %s", test)
                    .isNotEmpty());
  }

  /** Which of the contract's tests that store fails, or is not even tried by. */
  private Set<String> red(Supplier<StoreUnderTest> store, Predicate<String> tests) {
    OfOne.store = store;
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(OfOne.class))
            .filters(
                (PostDiscoveryFilter)
                    found ->
                        FilterResult.includedIf(
                            found
                                .getSource()
                                .filter(MethodSource.class::isInstance)
                                .map(source -> tests.test(name((MethodSource) source)))
                                .orElse(!found.isTest())))
            .build();
    Set<String> red = new TreeSet<>();
    launcher.execute(
        request,
        new TestExecutionListener() {
          @Override
          public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            if (result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
              red.add(
                  test.getSource()
                      .filter(MethodSource.class::isInstance)
                      .map(source -> name((MethodSource) source))
                      .orElseGet(() -> test.getDisplayName() + result));
            }
          }
        });
    return red;
  }

  private static String name(MethodSource test) {
    String of = Objects.requireNonNull(test.getClassName());
    return of.substring(of.lastIndexOf('$') + 1) + "." + test.getMethodName();
  }
}
