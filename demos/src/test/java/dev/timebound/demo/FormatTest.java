package dev.timebound.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
}
