package dev.timebound.demo.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.demo.Scenario;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class PromiseTest {
  private static final Backlog BACKLOG = new Backlog(100, 9_000);

  private final Map<Variant, Map<Client, Figures>> reports = new EnumMap<>(Variant.class);

  PromiseTest() {
    both(Variant.NOTHING_SHARED, one(0, 0, 1, 0, 0, 1));
    both(Variant.HALVING, one(400, 80, 8, 7, 3, 0));
    both(Variant.UNSTALLED, one(4_000, 1_000, 90, 90, 0, 0));
    both(Variant.PARALLEL, one(3_000, 800, 80, 79, 5, 0));
    both(Variant.UNSTALLED_AGAIN, one(5_000, 1_200, 90, 90, 0, 0));
  }

  @Test
  @DisplayName("all kept: nothing is broken, and the RESULT line has its six fields in order")
  void kept() {
    assertThat(broken()).isEmpty();
    assertThat(promise().result())
        .hasToString(
            "RESULT fetch healthy_records_before=0 healthy_records_halving=1600"
                + " healthy_records_parallel=12000 lost=0 doubled=0 left_running=0");
    assertThat(promise().summary())
        .isEqualTo(
            "healthy records a second 0 with nothing shared, 160 with halving, 1,600 with parallel,"
                + " 2,200 with no stall");
  }

  @Test
  @DisplayName("with nothing shared a record of a healthy partition, or a Fetch that ends: broken")
  void nothingShared() {
    put(Variant.NOTHING_SHARED, one(7, 1, 3, 2, 0, 1));
    assertThat(broken())
        .containsExactly(
            "Java, nothing shared: Fetches that wait in vain: 1 of 3 (expected: the only one)",
            "Java, nothing shared: healthy records: 14 (expected: 0)");
  }

  @Test
  @DisplayName("with halving no round, or one that brings none of the healthy records: broken")
  void halving() {
    put(Variant.HALVING, one(400, 80, 1, 0, 3, 0));
    assertThat(broken())
        .containsExactly("Java, halving: rounds for healthy partitions: 0 (expected: at least 1)");
    Figures some = one(400, 80, 8, 7, 3, 0);
    put(Variant.HALVING, with(some, new Rounds.Figures(8, 7, 500, 600, 7, 2)));
    assertThat(broken())
        .containsExactly("Java, halving: rounds without healthy records: 2 (expected: 0)");
  }

  @Test
  @DisplayName("70% of the speed without a stall is kept, less is broken; 95% is a goal")
  void speed() {
    both(Variant.PARALLEL, one(3_000, 770, 80, 79, 5, 0));
    assertThat(broken()).isEmpty();
    assertThat(promise().goals()).extracting(Scenario.Part::held).containsExactly(false);
    both(Variant.PARALLEL, one(3_000, 769, 80, 79, 5, 0));
    assertThat(broken())
        .containsExactly(
            "parallel: speed of the healthy partitions: 69.9% of that without a stall"
                + " (expected: at least 70%)");
    both(Variant.PARALLEL, one(3_000, 1_045, 80, 79, 5, 0));
    assertThat(promise().goals()).extracting(Scenario.Part::held).containsExactly(true);
    both(Variant.UNSTALLED, one(0, 0, 1, 0, 0, 0));
    both(Variant.UNSTALLED_AGAIN, one(0, 0, 1, 0, 0, 0));
    assertThat(promise().percentOfUnstalled()).isZero();
  }

  @Test
  @DisplayName("lost, doubled, missing, left running, read dry, a client's failure: each is broken")
  void counts() {
    put(
        Variant.PARALLEL,
        new Figures(
            List.of(0L, 9_000L, 3_000L),
            900,
            new Rounds.Figures(9, 8, 20, 30, 8, 0),
            5,
            5,
            4,
            99,
            2,
            3,
            "kcat has ended"));
    assertThat(broken())
        .containsExactly(
            "records lost: 2 (expected: 0)",
            "records doubled: 3 (expected: 0)",
            "records of partition 0 missing at the end: 1 (expected: 0)",
            "statements left running: 4 (expected: 0)",
            "healthy partitions read to their end while measured: 1 (expected: 0)",
            "parallel, Java: kcat has ended (expected: no failure)");
  }

  @Test
  @DisplayName("statements that run with nothing shared are told, and break nothing")
  void leftByNothingShared() {
    assertThat(promise().result().toString()).endsWith("left_running=0");
    assertThat(StallTable.of(reports).lines())
        .anyMatch(line -> line.matches("nothing shared, Java .* never ended +all +0 +2 +1"));
  }

  @Test
  @DisplayName("the table has a line for each variant and client, and what the stall costs a round")
  void table() {
    assertThat(StallTable.of(reports).lines())
        .anyMatch(line -> line.matches("halving, kcat +0 +400 +400 +80 +7 +500 ms +480 ms +3 .*"))
        .anyMatch(line -> line.matches("no stall .*, Java +100 +4,000 +4,000 +1,000 +90 .*"))
        .anyMatch(line -> line.matches("parallel, Java +0 +3,000 +3,000 +800 +79 .*"))
        .hasSize(3 + 10);
  }

  @Test
  @DisplayName("one client alone is enough; a variant that was not run is not")
  void clients() {
    reports.values().forEach(report -> report.remove(Client.KCAT));
    assertThat(broken()).isEmpty();
    reports.remove(Variant.HALVING);
    assertThatThrownBy(this::promise)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("expected: all");
  }

  @Test
  @DisplayName("goals that were missed are told and break nothing")
  void outcome() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Scenario.Outcome outcome =
        FetchScenario.outcome(promise(), new PrintStream(out, true, StandardCharsets.UTF_8));
    assertThat(outcome.broken()).isEmpty();
    assertThat(out.toString(StandardCharsets.UTF_8)).contains("missed    parallel: speed");
  }

  private Promise promise() {
    return new Promise(reports, BACKLOG);
  }

  private List<String> broken() {
    return Scenario.Outcome.of(promise().result(), promise().parts(), "").broken();
  }

  private void both(Variant variant, Figures figures) {
    put(variant, Client.JAVA, figures);
    put(variant, Client.KCAT, figures);
  }

  private void put(Variant variant, Figures figures) {
    put(variant, Client.JAVA, figures);
  }

  private void put(Variant variant, Client client, Figures figures) {
    reports.computeIfAbsent(variant, any -> new EnumMap<>(Client.class)).put(client, figures);
  }

  /** With so many records of each healthy partition. */
  private static Figures one(
      long healthy, double perSecond, long begun, long ended, long abandoned, long running) {
    return new Figures(
        List.of(perSecond >= 1_000 && abandoned == 0 ? 100L : 0L, healthy, healthy),
        perSecond,
        new Rounds.Figures(begun, ended, abandoned == 3 ? 500 : 20, 600, ended, 0),
        abandoned,
        2,
        running,
        100,
        0,
        0,
        "");
  }

  private static Figures with(Figures figures, Rounds.Figures rounds) {
    return new Figures(
        figures.received(),
        figures.healthyPerSecond(),
        rounds,
        figures.abandoned(),
        figures.cancelled(),
        figures.leftRunning(),
        figures.stalledAtEnd(),
        figures.lost(),
        figures.doubled(),
        figures.failure());
  }
}
