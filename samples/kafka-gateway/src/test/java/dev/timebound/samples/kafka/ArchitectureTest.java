package dev.timebound.samples.kafka;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(
    packages = "dev.timebound.samples.kafka",
    importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule recordClassesInOnePlace =
      noClasses()
          .that()
          .haveNameNotMatching(".*\\.KafkaRecords(\\$.*)?")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.apache.kafka.common.record.internal..")
          .because("they are internal to the client library and move between its releases");

  @ArchTest
  static final ArchRule logKnowsNoProtocol =
      noClasses()
          .that()
          .resideInAPackage("..kafka.log..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "org.apache.kafka..", "io.netty..", "reactor.netty..", "dev.timebound.test..");

  @ArchTest
  static final ArchRule groupsKnowNoNetwork =
      noClasses()
          .that()
          .resideInAPackage("..kafka.group..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("io.netty..", "reactor.netty..", "..kafka.log..");
}
