package dev.timebound.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class DemoTest {
  private static final List<String> KNOWN = List.of("bigtable", "pg", "cas");

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final List<String> ran = new ArrayList<>();
  private final Fake kept = new Fake("bigtable", List.of());

  @Test
  @DisplayName("exit 0 where the promise held; the RESULT line is the last one")
  void heldPromise() {
    assertThat(run(List.of(kept), "bigtable")).isZero();
    assertThat(lines()).endsWith("RESULT bigtable x=1");
    assertThat(ran).containsExactly("bigtable");
  }

  @Test
  @DisplayName("exit 1 where a promise did not hold, with the reason and the RESULT line")
  void brokenPromise() {
    Fake broken = new Fake("pg", List.of("rows lost: 3 (expected: 0)"));

    assertThat(run(List.of(kept, broken), "all")).isEqualTo(1);
    assertThat(lines()).endsWith("RESULT bigtable x=1", "RESULT pg x=1");
    assertThat(lines()).anyMatch(line -> line.contains("rows lost: 3"));
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
  @DisplayName("exit 2 for a scenario that does not stand yet, one that is unknown, an option, two")
  void usage() {
    assertThat(run(List.of(kept), "cas")).isEqualTo(2);
    assertThat(err.toString(StandardCharsets.UTF_8)).contains("cas does not stand yet");
    assertThat(run(List.of(kept), "nonsense")).isEqualTo(2);
    assertThat(err.toString(StandardCharsets.UTF_8)).contains("Unknown scenario nonsense");
    assertThat(run(List.of(kept), "--slow")).isEqualTo(2);
    assertThat(run(List.of(kept), "bigtable", "pg")).isEqualTo(2);
    assertThat(ran).isEmpty();
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
        KNOWN,
        standing,
        new PrintStream(out, true, StandardCharsets.UTF_8),
        new PrintStream(err, true, StandardCharsets.UTF_8));
  }

  private List<String> lines() {
    return out.toString(StandardCharsets.UTF_8).lines().toList();
  }

  private final class Fake implements Scenario {
    private final String name;
    private final List<String> broken;
    private boolean quick;

    Fake(String name, List<String> broken) {
      this.name = name;
      this.broken = broken;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Outcome run(boolean quick, PrintStream to) {
      this.quick = quick;
      ran.add(name);
      return new Outcome(ResultLine.of(name).with("x", 1), broken);
    }
  }
}
