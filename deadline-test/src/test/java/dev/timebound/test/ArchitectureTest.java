package dev.timebound.test;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ArchitectureTest {
  private final JavaClasses classes =
      new ClassFileImporter()
          .withImportOption(new ImportOption.DoNotIncludeTests())
          .importPackages("dev.timebound.test");

  @Test
  @DisplayName("only the JUnit extension needs JUnit: proxy and servers run without it")
  void junitIsOptional() {
    noClasses()
        .that()
        .haveSimpleNameNotEndingWith("Extension")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("org.junit..", "org.assertj..", "org.opentest4j..")
        .check(classes);
  }

  @Test
  @DisplayName("the kit knows no adapter")
  void noAdapter() {
    noClasses()
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("dev.timebound.grpc..", "dev.timebound.bigtable..")
        .check(classes);
  }
}
