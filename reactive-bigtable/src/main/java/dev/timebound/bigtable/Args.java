package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import java.util.Objects;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Checks of what a user hands in; each message names the setting, the value and what was expected.
 */
final class Args {
  /** The service's own limit for a row key. */
  static final int MAX_KEY_BYTES = 4096;

  private static final Pattern TABLE_ID = Pattern.compile("[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}");

  private Args() {}

  static IllegalArgumentException refused(String setting, @Nullable Object value, String expected) {
    return new IllegalArgumentException(setting + ": " + value + " (expected: " + expected + ")");
  }

  static String tableId(String tableId) {
    Objects.requireNonNull(tableId, "tableId");
    if (!TABLE_ID.matcher(tableId).matches()) {
      throw refused(
          "tableId",
          '"' + tableId + '"',
          tableId.contains("/")
              ? "the short id, not the full name"
              : "1 to 50 of letters, digits, '_', '-' and '.', the first no '-' or '.'");
    }
    return tableId;
  }

  static ByteString key(String setting, ByteString key) {
    if (key.isEmpty() || key.size() > MAX_KEY_BYTES) {
      throw refused(setting, key.size() + " bytes", "1 to " + MAX_KEY_BYTES + " bytes");
    }
    return key;
  }

  static long atLeast(String setting, long value, long least, String expected) {
    if (value < least) {
      throw refused(setting, value, expected);
    }
    return value;
  }
}
