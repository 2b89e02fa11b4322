package dev.timebound.demo;

import java.util.StringJoiner;

/**
 * The last word of a scenario, for people and scripts alike: {@code RESULT <scenario> key=value …}
 * on one line, the keys in the order they were put in.
 */
public final class ResultLine {
  private final StringJoiner line;

  private ResultLine(String scenario) {
    line = new StringJoiner(" ");
    line.add("RESULT").add(plain("scenario", scenario));
  }

  public static ResultLine of(String scenario) {
    return new ResultLine(scenario);
  }

  /** Adds a whole number. */
  public ResultLine with(String key, long value) {
    line.add(plain("key", key) + "=" + value);
    return this;
  }

  @Override
  public String toString() {
    return line.toString();
  }

  private static String plain(String what, String text) {
    if (text.isEmpty() || !text.chars().allMatch(c -> c > ' ' && c != '=')) {
      throw new IllegalArgumentException(
          what + ": '" + text + "' (expected: text without spaces and without =)");
    }
    return text;
  }
}
