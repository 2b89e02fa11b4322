package dev.timebound.bench;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

/** The values of one figure over the rounds. NaN where there is none. Not thread-safe. */
final class Samples {
  private final List<Double> values = new ArrayList<>();

  void add(double value) {
    values.add(value);
    Collections.sort(values);
  }

  /** The middle one; of an even number of values the mean of the two in the middle. */
  double median() {
    int n = values.size();
    if (n == 0) {
      return Double.NaN;
    }
    return n % 2 == 1 ? values.get(n / 2) : (values.get(n / 2 - 1) + values.get(n / 2)) / 2;
  }

  double min() {
    return values.isEmpty() ? Double.NaN : values.get(0);
  }

  double max() {
    return values.isEmpty() ? Double.NaN : values.get(values.size() - 1);
  }

  /** All of them together. */
  double sum() {
    return values.stream().mapToDouble(Double::doubleValue).sum();
  }

  /** The median as a cell of a table. */
  String cell(String format) {
    return String.format(Locale.ROOT, format, median());
  }

  /** Median, min and max as cells of a table, each in this format. */
  String[] cells(String format) {
    return new String[] {
      String.format(Locale.ROOT, format, median()),
      String.format(Locale.ROOT, format, min()),
      String.format(Locale.ROOT, format, max())
    };
  }
}
