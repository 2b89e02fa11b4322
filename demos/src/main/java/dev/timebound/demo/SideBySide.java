package dev.timebound.demo;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * A table of reports side by side: a column for each, a line for each figure.
 *
 * @param <R> the reports
 */
public final class SideBySide<R> {
  private final List<R> reports;
  private final TextTable table;

  private SideBySide(List<String> heading, List<R> reports) {
    this.reports = reports;
    this.table = new TextTable(heading.toArray(String[]::new));
  }

  /**
   * With no line yet.
   *
   * @param reports the map's order is the columns' order
   * @param title of a column, {@code \n} parts its lines
   */
  public static <K, R> SideBySide<R> of(Map<K, R> reports, Function<K, String> title) {
    List<String> heading = new ArrayList<>(reports.size() + 1);
    heading.add("");
    reports.keySet().forEach(key -> heading.add(title.apply(key)));
    return new SideBySide<>(heading, List.copyOf(reports.values()));
  }

  /** A line of whole numbers. */
  public SideBySide<R> count(String what, Function<R, ? extends Number> figure) {
    return line(what, report -> Figure.number(figure.apply(report).longValue()));
  }

  /** A line of whatever text. */
  public SideBySide<R> line(String what, Function<R, String> cell) {
    List<String> cells = new ArrayList<>(reports.size() + 1);
    cells.add(what);
    reports.forEach(report -> cells.add(cell.apply(report)));
    table.row(cells.toArray(String[]::new));
    return this;
  }

  @Override
  public String toString() {
    return table.toString();
  }
}
