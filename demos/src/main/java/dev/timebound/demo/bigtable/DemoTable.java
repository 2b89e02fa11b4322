package dev.timebound.demo.bigtable;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * What stands in the table, by rule, so that each row read can be checked to the last byte without
 * a copy at hand: row {@code i} has the key {@code row-0000000i} and a content that follows from
 * {@code i} alone. Of 100 rows 70 have 100 bytes, 25 have 1 KiB, 4 have 4 KiB in four cells and one
 * has 32 KiB; every 2,000th has 200 KiB. Immutable.
 */
public final class DemoTable {
  public static final String FAMILY = "f";

  private static final String PREFIX = "row-";
  private static final int DIGITS = 8;
  private static final int CELL = 1_024;
  private static final int LARGEST = 200 << 10;
  private static final int SHIFTS = 4_096;
  private static final int STAMP = 4;

  private final int rows;
  private final byte[] noise = new byte[LARGEST + SHIFTS];

  /** A table of that many rows (1 to 99,999,999). */
  public DemoTable(int rows) {
    if (rows < 1 || rows > 99_999_999) {
      throw new IllegalArgumentException("rows: " + rows + " (expected: 1 to 99999999)");
    }
    this.rows = rows;
    new Random(7).nextBytes(noise);
  }

  public int rows() {
    return rows;
  }

  /** The key of row {@code index}; of {@link #rows} too, as an end that no row has. */
  public String key(int index) {
    String digits = Integer.toString(index);
    return PREFIX + "0".repeat(DIGITS - digits.length()) + digits;
  }

  /** The row that has this key; -1 where none of this table has it. */
  public int index(String key) {
    if (key.length() != PREFIX.length() + DIGITS || !key.startsWith(PREFIX)) {
      return -1;
    }
    int index = 0;
    for (int i = PREFIX.length(); i < key.length(); i++) {
      int digit = key.charAt(i) - '0';
      if (digit < 0 || digit > 9) {
        return -1;
      }
      index = index * 10 + digit;
    }
    return index < rows ? index : -1;
  }

  /** How many bytes row {@code index} holds. */
  public static int size(int index) {
    if (index % 2_000 == 1_999) {
      return LARGEST;
    }
    int of100 = index % 100;
    if (of100 < 70) {
      return 100;
    }
    return of100 < 95 ? CELL : of100 < 99 ? 4 * CELL : 32 * CELL;
  }

  /** The cells of row {@code index}, in the order they are read. */
  public List<ByteString> cells(int index) {
    ByteString value = value(index);
    if (value.size() != 4 * CELL) {
      return List.of(value);
    }
    List<ByteString> cells = new ArrayList<>();
    for (int from = 0; from < value.size(); from += CELL) {
      cells.add(value.substring(from, from + CELL));
    }
    return cells;
  }

  private ByteString value(int index) {
    ByteString stamp =
        ByteString.copyFrom(
            new byte[] {
              (byte) (index >>> 24), (byte) (index >>> 16), (byte) (index >>> 8), (byte) index
            });
    return stamp.concat(filler(index));
  }

  private ByteString filler(int index) {
    return UnsafeByteOperations.unsafeWrap(noise, index % SHIFTS, size(index) - STAMP);
  }

  /** Whether this is what stands in row {@code index}, to the last byte. */
  public boolean holds(int index, ByteString value) {
    if (value.size() != size(index)) {
      return false;
    }
    int stamp =
        (value.byteAt(0) & 0xff) << 24
            | (value.byteAt(1) & 0xff) << 16
            | (value.byteAt(2) & 0xff) << 8
            | (value.byteAt(3) & 0xff);
    return stamp == index && value.substring(STAMP).equals(filler(index));
  }
}
