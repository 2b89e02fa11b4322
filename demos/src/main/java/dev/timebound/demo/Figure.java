package dev.timebound.demo;

import java.util.Locale;

/** How the tables write what they show, the same in all of them. */
public final class Figure {
  private Figure() {}

  /** With a comma at every thousand. */
  public static String number(long count) {
    return String.format(Locale.ROOT, "%,d", count);
  }

  /** To the tenth of one below 100, whole from there on. */
  public static String millis(double millis) {
    return String.format(Locale.ROOT, millis < 100 ? "%,.1f ms" : "%,.0f ms", millis);
  }

  /** Seconds to the thousandth; a negative one is "never". */
  public static String seconds(long millis) {
    return millis < 0 ? "never" : String.format(Locale.ROOT, "%.3f s", millis / 1e3);
  }
}
