package dev.timebound.arch;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import reactor.core.scheduler.Schedulers;

@AnalyzeClasses(packages = "dev.timebound", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  @ArchTest
  static final ArchRule coreKnowsNoAdapter =
      noClasses()
          .that()
          .resideInAnyPackage("dev.timebound.deadline..", "dev.timebound.health..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "io.grpc..",
              "com.google..",
              "java.sql..",
              "javax.sql..",
              "io.r2dbc..",
              "org.postgresql..",
              "org.springframework..",
              "io.netty..",
              "reactor.netty..",
              "dev.timebound.grpc..",
              "dev.timebound.bigtable..")
          .because("HE-1: the core knows no gRPC, no SQL, no Spring and no adapter");

  @ArchTest
  static final ArchRule deadlineStandsAlone =
      noClasses()
          .that()
          .resideInAPackage("dev.timebound.deadline..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("dev.timebound.health..")
          .because("a deadline is usable without the health engine");

  @ArchTest
  static final ArchRule timeComesFromTheScheduler =
      noClasses()
          .that()
          .resideInAnyPackage("dev.timebound.deadline..", "dev.timebound.health..")
          .should()
          .callMethod(System.class, "currentTimeMillis")
          .orShould()
          .callMethod(System.class, "nanoTime")
          .orShould()
          .callMethod(Thread.class, "sleep", long.class)
          .orShould()
          .callMethod(Schedulers.class, "boundedElastic")
          .because("DL-1, HE-10: virtual time must reach every rule of time");

  @ArchTest
  static final ArchRule contextPropagationIsOptional =
      noClasses()
          .that()
          .doNotHaveSimpleName("DeadlineThreadLocalAccessor")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer.context..")
          .because("DL-7: one class needs it, which nothing loads where it is absent");

  @ArchTest
  static final ArchRule metersAreOptional =
      noClasses()
          .that()
          .resideInAPackage("dev.timebound.deadline..")
          .and()
          .doNotHaveSimpleName("BudgetMeters")
          .and()
          .haveNameNotMatching(".*RetryBudget\\$Builder")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer.core..")
          .because("DL-11: one class uses Micrometer, and the builder names it");

  @ArchTest
  static final ArchRule observationsAreOptional =
      noClasses()
          .that()
          .doNotHaveSimpleName("CallObservation")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer.observation..")
          .because("one class needs it, which nothing loads where it is absent");

  @ArchTest
  static final ArchRule operatorsAreNotPublic =
      classes()
          .that()
          .resideInAPackage("dev.timebound.deadline..")
          .and()
          .areAssignableTo(org.reactivestreams.Subscription.class)
          .or()
          .areAssignableTo(org.reactivestreams.Publisher.class)
          .should()
          .notBePublic();
}
