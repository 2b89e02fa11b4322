package dev.timebound.pg;

/** A position in the write-ahead log, as Postgres writes it: {@code 16/B374D848}. */
final class Lsn {
  private Lsn() {}

  /**
   * @throws IllegalArgumentException where it is not of the form hex/hex, each of at most 8 digits
   */
  static long parse(String text) {
    int slash = Settings.required("lsn", text).indexOf('/');
    try {
      if (slash > 0 && slash <= 8 && text.length() - slash <= 9) {
        // parseUnsignedInt takes a sign, which Postgres does not
        if (Character.digit(text.charAt(0), 16) >= 0
            && Character.digit(text.charAt(slash + 1), 16) >= 0) {
          long high = Integer.toUnsignedLong(Integer.parseUnsignedInt(text, 0, slash, 16));
          long low =
              Integer.toUnsignedLong(Integer.parseUnsignedInt(text, slash + 1, text.length(), 16));
          return high << 32 | low;
        }
      }
    } catch (NumberFormatException | IndexOutOfBoundsException e) {
      // refused below
    }
    throw Settings.refused("lsn", text, "like 16/B374D848");
  }

  static String format(long lsn) {
    return Long.toHexString(lsn >>> 32).toUpperCase(java.util.Locale.ROOT)
        + "/"
        + Integer.toHexString((int) lsn).toUpperCase(java.util.Locale.ROOT);
  }
}
