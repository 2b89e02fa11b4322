package dev.timebound.fetch;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** A line of halving-shares.csv, in milliseconds. */
record ShareRow(
    String name,
    double maxWait,
    int partition,
    String behaviour,
    double offsets,
    double startsAt,
    double share,
    double cap,
    double margin,
    double budget,
    double endsAt) {
  static final double TOLERANCE = 0.001;

  /** By case, in order. */
  static Map<String, List<ShareRow>> cases() {
    Map<String, List<ShareRow>> cases = new LinkedHashMap<>();
    try (InputStream in =
            Objects.requireNonNull(ShareRow.class.getResourceAsStream("/halving-shares.csv"));
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      lines
          .lines()
          .filter(line -> !line.startsWith("#") && !line.startsWith("case,"))
          .map(ShareRow::of)
          .forEach(row -> cases.computeIfAbsent(row.name(), n -> new ArrayList<>()).add(row));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return cases;
  }

  private static ShareRow of(String line) {
    String[] f = line.split(",", -1);
    return new ShareRow(
        f[0],
        Double.parseDouble(f[1]),
        Integer.parseInt(f[2]),
        f[3],
        Double.parseDouble(f[4]),
        Double.parseDouble(f[5]),
        Double.parseDouble(f[6]),
        Double.parseDouble(f[7]),
        Double.parseDouble(f[8]),
        f[9].isEmpty() ? -1 : Double.parseDouble(f[9]),
        Double.parseDouble(f[10]));
  }

  static double ms(long nanos) {
    return nanos / 1e6;
  }

  static long nanos(double ms) {
    return Math.round(ms * 1e6);
  }
}
