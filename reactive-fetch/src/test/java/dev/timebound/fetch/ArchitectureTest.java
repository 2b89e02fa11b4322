package dev.timebound.fetch;

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
    packages = "dev.timebound.fetch",
    importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule knowsNoAdapter =
      noClasses()
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.timebound.bigtable..",
              "dev.timebound.cas..",
              "dev.timebound.grpc..",
              "dev.timebound.test..")
          .because("the fetcher knows the core, and stores by their interface");

  @ArchTest
  static final ArchRule onlyItsStoreKnowsPostgres =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.timebound.fetch.pg..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("dev.timebound.pg..", "io.r2dbc..", "dev.timebound.fetch.pg..")
          .because("reactive-pg is optional: who takes another store has none of it");

  @ArchTest
  static final ArchRule onlyItsStoreKnowsS3 =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.timebound.fetch.s3..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("software.amazon..", "dev.timebound.fetch.s3..")
          .because("the SDK is optional: who takes another store has none of it");

  @ArchTest
  static final ArchRule micrometerIsOptional =
      noClasses()
          .that()
          .haveNameNotMatching(
              ".*\\.(FetchMeters.*|FetchObservations.*|PermitMeters.*"
                  + "|PartitionFetcherBuilder|BoundedStore.*"
                  + "|SegmentMeters.*|SegmentStoreBuilder)")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer..")
          .because("Micrometer is optional: few classes touch it at run time");

  @ArchTest
  static final ArchRule decisionsHaveNoTimers =
      noClasses()
          .that()
          .haveNameMatching(".*\\.(Shares|Share|SharePolicy|Turns|ByteBudget|LongPoll|StallLog)")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("reactor..", "dev.timebound.deadline..", "dev.timebound.health..")
          .because("what decides takes the time as a number");

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
            "AbortedTransaction",
            "BoundedStore",
            "ErrorCode",
            "FetchClient",
            "FetchException",
            "FetchRequest",
            "FetchResponse",
            "ForwardingStore",
            "Fsync",
            "Isolation",
            "ListedOffset",
            "LockedPartition",
            "MemoryStore",
            "OffsetQuery",
            "Offsets",
            "PartitionData",
            "PartitionFetcher",
            "PartitionFetcherBuilder",
            "PartitionStore",
            "PgStore",
            "ReadSpec",
            "RecordBatch",
            "S3Store",
            "S3StoreException",
            "SegmentStore",
            "SegmentStoreBuilder",
            "SegmentStoreException",
            "SharePolicy",
            "TimestampOffset",
            "TopicPartition");
  }
}
