package dev.timebound.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class BenchTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final List<String> ran = new ArrayList<>();

  @Test
  @DisplayName("no name runs all; the RATIO lines come last, in order, whatever the figures")
  void all() {
    assertThat(run()).isZero();
    assertThat(ran).containsExactly("one", "two");
    assertThat(out.toString(StandardCharsets.UTF_8).lines())
        .endsWith("RATIO one 0.10", "RATIO two 3.00");
  }

  @Test
  @DisplayName("names run in the order given, once each; --quick is passed on")
  void named() {
    assertThat(run("two", "--quick", "one", "two")).isZero();
    assertThat(ran).containsExactly("two quick", "one quick");
  }

  @Test
  @DisplayName("an unknown name lists the names and exits 2, with nothing run")
  void unknown() {
    assertThat(run("one", "three")).isEqualTo(2);
    assertThat(err.toString(StandardCharsets.UTF_8))
        .contains("Unknown benchmark three (benchmarks: one, two, failing)");
    assertThat(run("--fast")).isEqualTo(2);
    assertThat(ran).isEmpty();
  }

  @Test
  @DisplayName("--help tells the names and runs nothing; the script knows every benchmark")
  void help() throws IOException {
    assertThat(run("--help")).isZero();
    assertThat(out.toString(StandardCharsets.UTF_8).lines())
        .containsExactly("Usage: ./bench [one|two|failing ...] [--quick]");
    assertThat(ran).isEmpty();
    String names = String.join(" ", Bench.BENCHMARKS.stream().map(Benchmark::name).toList());
    assertThat(Files.readString(Path.of("..", "bench"))).contains("names=(" + names + ")");
  }

  @Test
  @DisplayName("one that cannot be run exits 1; the others run and keep their RATIO lines")
  void failing() {
    assertThat(run("failing", "one")).isEqualTo(1);
    assertThat(ran).containsExactly("one");
    assertThat(out.toString(StandardCharsets.UTF_8).lines()).endsWith("RATIO one 0.10");
    assertThat(err.toString(StandardCharsets.UTF_8)).contains("failing", "no server");
  }

  @Nested
  class Ratios {
    @Test
    @DisplayName("two decimals with a point, NaN where there is no figure")
    void format() {
      BenchRun run = new BenchRun(false, System.out);
      run.ratio("a-b", 12.3456);
      run.ratio("c", Double.NaN);
      run.ratio("d", Double.POSITIVE_INFINITY);

      assertThat(run.ratios()).containsExactly("RATIO a-b 12.35", "RATIO c NaN", "RATIO d NaN");
    }
  }

  @Nested
  class Turns {
    @Test
    @DisplayName("two contestants take turns at being first")
    void two() {
      assertThat(Rounds.order(List.of("a", "b"), 0)).containsExactly("a", "b");
      assertThat(Rounds.order(List.of("a", "b"), 1)).containsExactly("b", "a");
      assertThat(Rounds.order(List.of("a", "b"), 2)).containsExactly("a", "b");
    }

    @Test
    @DisplayName("over as many rounds as contestants no one is first twice")
    void many() {
      List<String> all = List.of("a", "b", "c", "d", "e");
      List<String> first = new ArrayList<>();
      for (int round = 0; round < 4; round += 2) {
        List<String> order = Rounds.order(all, round);
        assertThat(order).containsExactlyInAnyOrderElementsOf(all);
        first.add(order.get(0));
      }
      assertThat(first).doesNotHaveDuplicates();
      assertThat(Rounds.order(all, 1)).containsExactly("a", "e", "d", "c", "b");
    }

    @Test
    @DisplayName("the median, min and max of what the rounds gave; a ratio of medians")
    void contest() throws Exception {
      Contest<String> contest = new Contest<>(List.of("ours", "peer"));
      double[] ours = {10, 30, 20};
      double[] peer = {100, 40, 60};
      int[] at = new int[2];
      List<String> heard = new ArrayList<>();
      contest.run(
          3,
          who -> Figures.none().with("t", who.equals("ours") ? ours[at[0]++] : peer[at[1]++]),
          (round, who, figures) -> heard.add(round + who));

      assertThat(contest.of("ours", "t").median()).isEqualTo(20);
      assertThat(contest.of("ours", "t").min()).isEqualTo(10);
      assertThat(contest.of("ours", "t").max()).isEqualTo(30);
      assertThat(contest.of("ours", "t").sum()).isEqualTo(60);
      assertThat(contest.ratio("peer", "ours", "t")).isEqualTo(3);
      assertThat(contest.ratio("peer", "ours", "none")).isNaN();
      assertThat(heard).containsExactly("1ours", "1peer", "2peer", "2ours", "3ours", "3peer");
    }

    @Test
    @DisplayName("an even number of values has its median in the middle")
    void evenMedian() {
      Samples samples = new Samples();
      samples.add(4);
      samples.add(1);

      assertThat(samples.median()).isEqualTo(2.5);
      assertThat(samples.cells("%.1f")).containsExactly("2.5", "1.0", "4.0");
    }
  }

  @Nested
  class Lines {
    @Test
    @DisplayName("figures read back what they wrote")
    void roundTrip() {
      Figures figures = Figures.none().with("cpu_us", 0.3125).with("rows", 1e9);

      Figures read = Figures.parse(figures.toString());
      assertThat(read.get("cpu_us")).isEqualTo(0.3125);
      assertThat(read.get("rows")).isEqualTo(1e9);
      assertThat(read.keys()).containsExactly("cpu_us", "rows");
    }

    @Test
    @DisplayName("what is not a line of figures, and a figure that is not there, are named")
    void refused() {
      assertThatThrownBy(() -> Figures.parse("RATIO a 1")).hasMessageContaining("RATIO a 1");
      assertThatThrownBy(() -> Figures.parse("FIGURES a")).hasMessageContaining("'a'");
      assertThatThrownBy(() -> Figures.none().with("a b", 1)).hasMessageContaining("'a b'");
      assertThatThrownBy(() -> Figures.none().with("a", 1).get("b")).hasMessageContaining("[a]");
    }
  }

  private int run(String... args) {
    Benchmark failing =
        new Benchmark() {
          @Override
          public String name() {
            return "failing";
          }

          @Override
          public void run(BenchRun run) {
            throw new IllegalStateException("no server");
          }
        };
    List<Benchmark> all =
        args.length == 0
            ? List.of(new Fake("one", 0.1), new Fake("two", 3))
            : List.of(new Fake("one", 0.1), new Fake("two", 3), failing);
    return Bench.run(
        Arrays.asList(args),
        all,
        new PrintStream(out, true, StandardCharsets.UTF_8),
        new PrintStream(err, true, StandardCharsets.UTF_8));
  }

  private final class Fake implements Benchmark {
    private final String name;
    private final double ratio;

    Fake(String name, double ratio) {
      this.name = name;
      this.ratio = ratio;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public void run(BenchRun run) {
      ran.add(run.quick() ? name + " quick" : name);
      run.ratio(name, ratio);
    }
  }
}
