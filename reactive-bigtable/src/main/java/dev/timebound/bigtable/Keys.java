package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import org.jspecify.annotations.Nullable;

/**
 * Row keys in the order the service sorts them: bytes, unsigned, a prefix before what it begins.
 */
final class Keys {
  private static final ByteString ZERO = ByteString.copyFrom(new byte[1]);
  private static final int SHOWN = 64;

  private Keys() {}

  static int compare(ByteString a, ByteString b) {
    int n = Math.min(a.size(), b.size());
    for (int i = 0; i < n; i++) {
      int x = a.byteAt(i) & 0xff;
      int y = b.byteAt(i) & 0xff;
      if (x != y) {
        return x - y;
      }
    }
    return a.size() - b.size();
  }

  /** The least key after {@code key}. */
  static ByteString next(ByteString key) {
    return key.concat(ZERO);
  }

  /** Whether {@code b} is the least key after {@code a}: nothing lies between them. */
  static boolean adjacent(ByteString a, ByteString b) {
    return b.size() == a.size() + 1 && b.byteAt(a.size()) == 0 && b.startsWith(a);
  }

  /** The least key after every key that begins with {@code prefix}; null where there is none. */
  static @Nullable ByteString afterPrefix(ByteString prefix) {
    int n = prefix.size();
    while (n > 0 && prefix.byteAt(n - 1) == (byte) 0xff) {
      n--;
    }
    if (n == 0) {
      return null;
    }
    byte[] end = prefix.substring(0, n).toByteArray();
    end[n - 1]++;
    return ByteString.copyFrom(end);
  }

  /** For messages: printable ASCII as it is, other bytes as \xNN, long keys cut. */
  static String show(ByteString key) {
    int n = Math.min(key.size(), SHOWN);
    StringBuilder out = new StringBuilder(n + 8).append('"');
    for (int i = 0; i < n; i++) {
      int b = key.byteAt(i) & 0xff;
      if (b == '"' || b == '\\') {
        out.append('\\').append((char) b);
      } else if (b >= 0x20 && b < 0x7f) {
        out.append((char) b);
      } else {
        out.append("\\x")
            .append(Character.forDigit(b >> 4, 16))
            .append(Character.forDigit(b & 15, 16));
      }
    }
    out.append('"');
    if (n < key.size()) {
      out.append("… (").append(key.size()).append(" bytes)");
    }
    return out.toString();
  }
}
