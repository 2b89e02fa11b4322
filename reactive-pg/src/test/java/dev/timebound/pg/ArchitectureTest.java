package dev.timebound.pg;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(packages = "dev.timebound.pg", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule micrometerIsOptional =
      noClasses()
          .that()
          .haveNameNotMatching(".*\\.(PgMeters.*|RoutedDatabase(Builder)?)")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer..")
          .because("Micrometer is optional: one class touches it at run time");

  @ArchTest
  static final ArchRule timeIsTheSchedulers =
      noClasses()
          .should()
          .callMethod(System.class, "nanoTime")
          .orShould()
          .callMethod(System.class, "currentTimeMillis")
          .orShould()
          .callMethod(Thread.class, "sleep", long.class)
          .because("time comes from the Reactor Scheduler");

  @ArchTest
  static void whatAUserTouches(JavaClasses classes) {
    assertThat(classes.stream())
        .filteredOn(c -> c.getModifiers().contains(JavaModifier.PUBLIC) && c.isTopLevelClass())
        .extracting(JavaClass::getSimpleName)
        .containsExactlyInAnyOrder(
            "Fence",
            "ReadOnlyRouting",
            "ReadOptions",
            "ReadYourWrites",
            "ReaderPromoted",
            "ReaderUnavailableException",
            "RouteReason",
            "RouteTarget",
            "RoutedDatabase",
            "RoutedDatabaseBuilder",
            "RoutingConnectionFactory",
            "WriterRoleException");
  }
}
