package dev.timebound.health;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ArchitectureTest {
  private final JavaClasses health =
      new ClassFileImporter()
          .withImportOption(new ImportOption.DoNotIncludeTests())
          .importPackages("dev.timebound.health");

  @Test
  @DisplayName("HE-1 the engine knows no gRPC, no SQL, no adapter")
  void knows() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "dev.timebound.health",
            "java..",
            "reactor..",
            "org.reactivestreams..",
            "org.jspecify..",
            "org.slf4j..",
            "io.micrometer.core.instrument..",
            "io.github.resilience4j.core..")
        .check(health);
    noClasses().should().dependOnClassesThat().resideInAPackage("java.sql..").check(health);
  }

  @Test
  @DisplayName("HE-9 Micrometer is optional: one class uses it, and the builder names it")
  void micrometer() {
    noClasses()
        .that()
        .doNotHaveSimpleName("MicrometerMeters")
        .and()
        .haveNameNotMatching(".*HealthEngine.*")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("io.micrometer..")
        .check(health);
  }

  @Test
  @DisplayName("HE-10 no thread of its own")
  void threads() {
    noClasses()
        .should()
        .dependOnClassesThat()
        .belongToAnyOf(Thread.class)
        .orShould()
        .dependOnClassesThat()
        .haveNameMatching("java.util.concurrent.*Executor.*Service.*|java.util.Timer")
        .check(health);
  }
}
