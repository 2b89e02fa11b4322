package dev.timebound.demo;

import java.util.ArrayList;
import java.util.List;

/**
 * A table of plain text: the first column is flush left, all others flush right, columns two spaces
 * apart, a rule under the heading. A heading may have several lines, parted by {@code \n}.
 */
public final class TextTable {
  private static final String GAP = "  ";

  private final List<String> heading;
  private final List<List<String>> rows = new ArrayList<>();

  public TextTable(String... heading) {
    if (heading.length == 0) {
      throw new IllegalArgumentException("heading: none (expected: at least one column)");
    }
    this.heading = List.of(heading);
  }

  /** Adds a row; it must have as many cells as the heading. */
  public TextTable row(String... cells) {
    if (cells.length != heading.size()) {
      throw new IllegalArgumentException(
          "cells: " + cells.length + " (expected: " + heading.size() + ")");
    }
    rows.add(List.of(cells));
    return this;
  }

  @Override
  public String toString() {
    List<List<String>> head = headingLines();
    int[] width = new int[heading.size()];
    for (List<String> line : head) {
      widen(width, line);
    }
    for (List<String> line : rows) {
      widen(width, line);
    }
    StringBuilder text = new StringBuilder();
    for (List<String> line : head) {
      append(text, line, width);
    }
    int total = GAP.length() * (width.length - 1);
    for (int w : width) {
      total += w;
    }
    text.append("-".repeat(total)).append('\n');
    for (List<String> line : rows) {
      append(text, line, width);
    }
    return text.toString();
  }

  /** The heading's lines, flush with the bottom. */
  private List<List<String>> headingLines() {
    List<List<String>> parts = heading.stream().map(cell -> List.of(cell.split("\n", -1))).toList();
    int height = parts.stream().mapToInt(List::size).max().orElse(1);
    List<List<String>> lines = new ArrayList<>();
    for (int i = 0; i < height; i++) {
      List<String> line = new ArrayList<>();
      for (List<String> cell : parts) {
        int at = i - (height - cell.size());
        line.add(at < 0 ? "" : cell.get(at));
      }
      lines.add(line);
    }
    return lines;
  }

  private static void widen(int[] width, List<String> line) {
    for (int i = 0; i < width.length; i++) {
      width[i] = Math.max(width[i], line.get(i).length());
    }
  }

  private static void append(StringBuilder text, List<String> line, int[] width) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < width.length; i++) {
      String cell = line.get(i);
      String fill = " ".repeat(width[i] - cell.length());
      out.append(i == 0 ? cell + fill : GAP + fill + cell);
    }
    text.append(out.toString().stripTrailing()).append('\n');
  }
}
