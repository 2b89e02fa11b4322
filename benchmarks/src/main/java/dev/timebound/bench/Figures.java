package dev.timebound.bench;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * What a forked JVM has to say, on one line: {@code FIGURES key=value …}. Values are numbers.
 * Immutable.
 */
final class Figures {
  private static final String WORD = "FIGURES";

  private final Map<String, Double> values;

  private Figures(Map<String, Double> values) {
    this.values = values;
  }

  static Figures none() {
    return new Figures(Map.of());
  }

  /** These and one more. */
  Figures with(String key, double value) {
    if (key.isEmpty() || !key.chars().allMatch(c -> c > ' ' && c != '=')) {
      throw new IllegalArgumentException(
          "key: '" + key + "' (expected: text without spaces and without =)");
    }
    Map<String, Double> more = new LinkedHashMap<>(values);
    more.put(key, value);
    return new Figures(more);
  }

  /** Whether a line is one of figures. */
  static boolean isLine(String line) {
    return line.startsWith(WORD + " ");
  }

  /**
   * Reads a line that {@link #toString} wrote.
   *
   * @throws IllegalArgumentException where it is not one
   */
  static Figures parse(String line) {
    if (!isLine(line)) {
      throw new IllegalArgumentException("line: '" + line + "' (expected: FIGURES key=value ...)");
    }
    Figures figures = none();
    for (String pair : line.substring(WORD.length()).trim().split(" +")) {
      int at = pair.indexOf('=');
      if (at < 1) {
        throw new IllegalArgumentException("pair: '" + pair + "' (expected: key=value)");
      }
      figures = figures.with(pair.substring(0, at), Double.parseDouble(pair.substring(at + 1)));
    }
    return figures;
  }

  /**
   * @throws IllegalArgumentException where there is no such figure
   */
  double get(String key) {
    Double value = values.get(key);
    if (value == null) {
      throw new IllegalArgumentException(
          "key: " + key + " (expected: one of " + values.keySet() + ")");
    }
    return value;
  }

  Set<String> keys() {
    return Collections.unmodifiableSet(values.keySet());
  }

  @Override
  public String toString() {
    StringBuilder line = new StringBuilder(WORD);
    values.forEach((key, value) -> line.append(' ').append(key).append('=').append(value));
    return line.toString();
  }
}
