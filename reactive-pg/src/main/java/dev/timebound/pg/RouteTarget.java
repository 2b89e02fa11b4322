package dev.timebound.pg;

import java.util.Locale;

/** Where a read or a transaction runs. */
public enum RouteTarget {
  READER,
  WRITER;

  private final String tag = name().toLowerCase(Locale.ROOT);

  /** As in meters and log lines. */
  public String tag() {
    return tag;
  }
}
