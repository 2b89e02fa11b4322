package dev.timebound.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class DemoTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final List<String> ran = new ArrayList<>();
  private final Fake kept = new Fake("bigtable", true);

  @Test
  @DisplayName("exit 0 where the promise held; the RESULT line is the last one")
  void heldPromise() {
    assertThat(run(List.of(kept), "bigtable")).isZero();
    assertThat(lines())
        .containsSubsequence(
            "What was promised of Timebound, and what came of it:",
            "  held      reads failed: 0 (expected: 0)",
            "The promise of bigtable held.",
            "bigtable: twice as good")
        .endsWith("RESULT bigtable x=1");
    assertThat(ran).containsExactly("bigtable");
  }

  @Test
  @DisplayName("exit 1 where a promise did not hold, with the reason and the RESULT line")
  void brokenPromise() {
    Fake broken = new Fake("pg", false);

    assertThat(run(List.of(kept, broken), "all")).isEqualTo(1);
    assertThat(lines()).endsWith("RESULT bigtable x=1", "RESULT pg x=1");
    assertThat(lines()).contains("  NOT held  reads failed: 3 (expected: 0)");
  }

  @Test
  @DisplayName("exit 1 where a scenario could not be run; the others run all the same")
  void failure() {
    Scenario failing =
        new Scenario() {
          @Override
          public String name() {
            return "pg";
          }

          @Override
          public Outcome run(boolean quick, PrintStream to) {
            throw new IllegalStateException("no such server");
          }
        };

    assertThat(run(List.of(failing, kept), "all")).isEqualTo(1);
    assertThat(lines()).endsWith("RESULT bigtable x=1");
    assertThat(err.toString(StandardCharsets.UTF_8)).contains("pg", "no such server");
  }

  @Test
  @DisplayName("exit 2 for a scenario that is unknown, an option, two; only what exists is offered")
  void usage() {
    assertThat(run(List.of(kept), "nonsense")).isEqualTo(2);
    assertThat(err.toString(StandardCharsets.UTF_8))
        .contains("Unknown scenario nonsense (scenarios: all, bigtable)")
        .contains("Usage: ./demo [all|bigtable] [--quick]");
    assertThat(run(List.of(kept), "--slow")).isEqualTo(2);
    assertThat(run(List.of(kept), "bigtable", "pg")).isEqualTo(2);
    assertThat(ran).isEmpty();
  }

  @Test
  @DisplayName("--help tells the usage and runs nothing; the script knows every scenario")
  void help() throws IOException {
    assertThat(run(List.of(kept), "--help")).isZero();
    assertThat(lines()).containsExactly("Usage: ./demo [all|bigtable] [--quick]");
    assertThat(ran).isEmpty();
    String script = Files.readString(Path.of("..", "demo"));
    String names = String.join(" ", Demo.SCENARIOS.stream().map(Scenario::name).toList());
    assertThat(script).contains("names=(" + names + ")");
  }

  @Test
  @DisplayName("no name means all that stand; --quick is passed on wherever it stands")
  void defaults() {
    assertThat(run(List.of(kept))).isZero();
    assertThat(kept.quick).isFalse();
    assertThat(run(List.of(kept), "--quick", "bigtable")).isZero();
    assertThat(kept.quick).isTrue();
    assertThat(run(List.of(kept), "all", "--quick")).isZero();
    assertThat(ran).hasSize(3);
  }

  private int run(List<Scenario> standing, String... args) {
    return Demo.run(
        Arrays.asList(args),
        standing,
        new PrintStream(out, true, StandardCharsets.UTF_8),
        new PrintStream(err, true, StandardCharsets.UTF_8));
  }

  private List<String> lines() {
    return out.toString(StandardCharsets.UTF_8).lines().toList();
  }

  private final class Fake implements Scenario {
    private final String name;
    private final boolean held;
    private boolean quick;

    Fake(String name, boolean held) {
      this.name = name;
      this.held = held;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Outcome run(boolean quick, PrintStream to) {
      this.quick = quick;
      ran.add(name);
      return Outcome.of(
          ResultLine.of(name).with("x", 1),
          List.of(new Part("reads failed", held ? "0" : "3", "0", held)),
          "twice as good");
    }
  }
}
