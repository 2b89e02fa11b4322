package dev.timebound.cas;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(
    packages = "dev.timebound.cas",
    importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule knowsNoOtherAdapter =
      noClasses()
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.timebound.bigtable..", "dev.timebound.pg..", "dev.timebound.test..")
          .because("an adapter knows the core and the calls, no other adapter");

  @ArchTest
  static final ArchRule bouncyCastleIsOptional =
      noClasses()
          .that()
          .doNotHaveSimpleName("Blake3Hash")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.bouncycastle..")
          .because("BLAKE3's library is optional: one class touches it");

  @ArchTest
  static final ArchRule zstdIsOptional =
      noClasses()
          .that()
          .haveNameNotMatching("dev\\.timebound\\.cas\\.Zstd(\\$.*)?")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("com.github.luben..")
          .because("zstd's library is optional: one class touches it");

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
        .filteredOn(c -> c.getPackageName().equals("dev.timebound.cas"))
        .filteredOn(c -> c.getModifiers().contains(JavaModifier.PUBLIC) && c.isTopLevelClass())
        .extracting(JavaClass::getSimpleName)
        .containsExactlyInAnyOrder(
            "BlobNotFoundException",
            "BlobPresence",
            "CasCapabilities",
            "CasConfig",
            "CasRing",
            "CasRingBuilder",
            "DataLossException",
            "Digest",
            "DigestFunction",
            "DigestHasher",
            "DigestVerifier",
            "ReadManyResult",
            "ShardSelector",
            "UnknownBlobsException",
            "WriteManyResult",
            "WriteResult");
  }
}
