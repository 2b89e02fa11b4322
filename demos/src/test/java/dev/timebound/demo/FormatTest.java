package dev.timebound.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class FormatTest {

  @Nested
  class Result {
    @Test
    @DisplayName("the RESULT line has the scenario, then key=value in the order put in")
    void order() {
      String line = ResultLine.of("bigtable").with("max_ms", 12).with("a", -1).toString();

      assertThat(line).isEqualTo("RESULT bigtable max_ms=12 a=-1");
    }

    @Test
    @DisplayName("a key that would break the line is refused")
    void refused() {
      ResultLine line = ResultLine.of("bigtable");

      assertThatThrownBy(() -> line.with("max ms", 1)).hasMessageContaining("'max ms'");
      assertThatThrownBy(() -> line.with("max=ms", 1)).hasMessageContaining("'max=ms'");
      assertThatThrownBy(() -> line.with("", 1)).hasMessageContaining("key");
      assertThatThrownBy(() -> ResultLine.of("a\nb")).hasMessageContaining("scenario");
    }
  }

  @Nested
  class Table {
    @Test
    @DisplayName("the first column is flush left, the others right, headings sit at the bottom")
    void layout() {
      TextTable table = new TextTable("", "Google\npool of 10", "Timebound");
      table.row("slowest read", "10,003 ms", "2,100 ms").row("errors", "0", "0");

      assertThat(table.toString())
          .isEqualTo(
              """
                                Google
                            pool of 10  Timebound
              -----------------------------------
              slowest read   10,003 ms   2,100 ms
              errors                 0          0
              """);
    }

    @Test
    @DisplayName("a row of another width than the heading is refused")
    void width() {
      TextTable table = new TextTable("a", "b");

      assertThatThrownBy(() -> table.row("1")).hasMessage("cells: 1 (expected: 2)");
      assertThatThrownBy(TextTable::new).hasMessageContaining("heading");
    }
  }

  @Nested
  class Reports {
    @Test
    @DisplayName("side by side: a column a report in the map's order, a line a figure")
    void sideBySide() {
      Map<String, Integer> reports = new LinkedHashMap<>();
      reports.put("ours", 1_500);
      reports.put("their\nown", 2);

      String table =
          SideBySide.of(reports, title -> title)
              .count("calls", count -> count)
              .line("text", count -> "<" + count + ">")
              .toString();

      assertThat(table.lines())
          .containsExactly(
              "               their",
              "         ours    own",
              "--------------------",
              "calls   1,500      2",
              "text   <1500>    <2>");
    }

    @Test
    @DisplayName("figures: thousands, milliseconds finer below 100, seconds or never")
    void figures() {
      assertThat(Figure.number(1_234_567)).isEqualTo("1,234,567");
      assertThat(Figure.millis(99.94)).isEqualTo("99.9 ms");
      assertThat(Figure.millis(1_234.5)).isIn("1,234 ms", "1,235 ms");
      assertThat(Figure.seconds(1_050)).isEqualTo("1.050 s");
      assertThat(Figure.seconds(-1)).isEqualTo("never");
    }

    @Test
    @DisplayName("parts of a promise: none, some, within; what never came to pass is not in time")
    void parts() {
      assertThat(Scenario.Part.none("errors", 0).held()).isTrue();
      assertThat(Scenario.Part.none("errors", 1)).hasToString("errors: 1 (expected: 0)");
      assertThat(Scenario.Part.some("reads", 1).held()).isTrue();
      assertThat(Scenario.Part.some("reads", 0)).hasToString("reads: 0 (expected: at least 1)");
      assertThat(Scenario.Part.within("back", 5, 5).held()).isTrue();
      assertThat(Scenario.Part.within("back", 6, 5).held()).isFalse();
      assertThat(Scenario.Part.within("back", -1, 5))
          .hasToString("back: never (expected: at most 5 ms)");
    }
  }
}
