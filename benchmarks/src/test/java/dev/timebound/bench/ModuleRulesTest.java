package dev.timebound.bench;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/**
 * Who may know whom. This module has every other one on its class path, so it is here that the
 * arrows between modules can be seen whole.
 */
@AnalyzeClasses(
    packages = "dev.timebound",
    importOptions = {ImportOption.DoNotIncludeTests.class, ModuleRulesTest.OtherModules.class})
class ModuleRulesTest {

  /**
   * This module's own classes are left out: to measure what is package-private, some sit in an
   * adapter's package beside the peer. So is an adapter's test kit: JUnit is at home there.
   */
  static final class OtherModules implements ImportOption {
    @Override
    public boolean includes(Location location) {
      return !location.contains("/benchmarks/") && !location.contains("/dev/timebound/cas/kit/");
    }
  }

  private static final String[] CORE = {"dev.timebound.deadline..", "dev.timebound.health.."};

  /** What stands on the core and serves one backend each; those to come are named already. */
  private static final String[] ADAPTERS = {
    "dev.timebound.bigtable..", "dev.timebound.cas..", "dev.timebound.pg..", "dev.timebound.fetch.."
  };

  private static final String[] ABOVE = {
    "dev.timebound.demo..", "dev.timebound.bench..", "dev.timebound.spring.."
  };

  /**
   * The peer; its generated messages ({@code com.google.bigtable.v2}) are the wire, not the peer.
   */
  private static final DescribedPredicate<JavaClass> PEER =
      resideInAnyPackage("com.google.cloud.bigtable..", "com.google.api.gax..")
          .as("Google's own client");

  @ArchTest
  static final ArchRule coreKnowsNobody =
      noClasses()
          .that()
          .resideInAnyPackage(CORE)
          .should()
          .dependOnClassesThat(resideInAnyPackage(ADAPTERS))
          .orShould()
          .dependOnClassesThat(resideInAnyPackage(ABOVE))
          .orShould()
          .dependOnClassesThat(
              resideInAnyPackage(
                  "dev.timebound.grpc..",
                  "dev.timebound.test..",
                  "io.grpc..",
                  "com.google..",
                  "java.sql..",
                  "javax.sql..",
                  "io.r2dbc..",
                  "org.postgresql..",
                  "org.springframework.."))
          .because("the core knows no adapter, no gRPC, no SQL, no Spring");

  @ArchTest
  static final ArchRule adaptersDoNotKnowEachOther =
      slices()
          .matching("dev.timebound.(bigtable|cas|pg|fetch)..")
          .should()
          .notDependOnEachOther()
          .ignoreDependency(
              resideInAnyPackage("dev.timebound.fetch.."), resideInAnyPackage("dev.timebound.pg.."))
          .allowEmptyShould(true)
          .because("what two adapters need is in the core, or in deadline-grpc");

  @ArchTest
  static final ArchRule adaptersKnowNothingAbove =
      noClasses()
          .that()
          .resideInAnyPackage(ADAPTERS)
          .should()
          .dependOnClassesThat(resideInAnyPackage(ABOVE))
          .orShould()
          .dependOnClassesThat(
              resideInAnyPackage("dev.timebound.test..", "org.springframework..", "org.junit.."))
          .because("arrows run downwards only");

  @ArchTest
  static final ArchRule adaptersDoNotKnowThePeer =
      noClasses()
          .that()
          .resideInAnyPackage(ADAPTERS)
          .or()
          .resideInAPackage("dev.timebound.grpc..")
          .should()
          .dependOnClassesThat(PEER)
          .because("Google's client is what we are compared with, never what we stand on");

  @ArchTest
  static final ArchRule grpcKnowsTheCoreOnly =
      noClasses()
          .that()
          .resideInAPackage("dev.timebound.grpc..")
          .should()
          .dependOnClassesThat(resideInAnyPackage(ADAPTERS))
          .orShould()
          .dependOnClassesThat(resideInAnyPackage(ABOVE))
          .orShould()
          .dependOnClassesThat(
              resideInAnyPackage(
                  "dev.timebound.test..", "com.google.bigtable..", "com.google.cloud.."))
          .because("the pool serves any gRPC backend");

  @ArchTest
  static final ArchRule testKitKnowsNoAdapter =
      noClasses()
          .that()
          .resideInAPackage("dev.timebound.test..")
          .should()
          .dependOnClassesThat(resideInAnyPackage(ADAPTERS))
          .orShould()
          .dependOnClassesThat(resideInAnyPackage(ABOVE))
          .orShould()
          .dependOnClassesThat(resideInAPackage("dev.timebound.grpc.."))
          .because("an adapter's tests stand on the kit, so the kit cannot stand on an adapter");

  private static DescribedPredicate<JavaClass> resideInAPackage(String name) {
    return JavaClass.Predicates.resideInAPackage(name);
  }

  /** A rule about classes that were never read would hold for ever. */
  @org.junit.jupiter.api.Test
  void everyModuleIsSeen() {
    JavaClasses classes =
        new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .withImportOption(new OtherModules())
            .importPackages("dev.timebound");
    assertThat(classes.stream().map(JavaClass::getPackageName))
        .contains(
            "dev.timebound.deadline",
            "dev.timebound.health",
            "dev.timebound.grpc",
            "dev.timebound.bigtable",
            "dev.timebound.test",
            "dev.timebound.demo");
  }
}
