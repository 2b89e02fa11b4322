package dev.timebound.fetch.segments;

import java.nio.file.Path;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** One file of a partition. The last one is appended to; those before it are sealed. */
final class Segment {
  private static final String SUFFIX = ".segment";
  private static final String INDEX_SUFFIX = ".index";
  private static final int DIGITS = 20;

  final long base;
  final Path file;
  final Path indexFile;

  /** Of the one that is appended to; null once it is sealed, and its index is in a file. */
  private volatile @Nullable SparseIndex live;

  /** Where its last batch ends, and its latest time; written before it is sealed. */
  private volatile int length;

  private volatile long maxTimestamp = -1;

  Segment(Path directory, long base) {
    String name = String.format(Locale.ROOT, "%0" + DIGITS + "d", base);
    this.base = base;
    this.file = directory.resolve(name + SUFFIX);
    this.indexFile = directory.resolve(name + INDEX_SUFFIX);
  }

  /** Those that follow it begin there. */
  void seal(int at, long latest) {
    length = at;
    maxTimestamp = latest;
    live = null;
  }

  /** It is the last one, and appended to. */
  void begin(SparseIndex index) {
    live = index;
  }

  @Nullable SparseIndex live() {
    return live;
  }

  int length() {
    return length;
  }

  long maxTimestamp() {
    return maxTimestamp;
  }

  /** Its base offset; −1 where it is no segment's name. */
  static long baseOf(String fileName) {
    return number(fileName, SUFFIX);
  }

  static boolean isIndex(String fileName) {
    return number(fileName, INDEX_SUFFIX) >= 0;
  }

  private static long number(String fileName, String suffix) {
    if (fileName.length() != DIGITS + suffix.length() || !fileName.endsWith(suffix)) {
      return -1;
    }
    try {
      return Long.parseLong(fileName.substring(0, DIGITS));
    } catch (NumberFormatException e) {
      return -1;
    }
  }

  @Override
  public String toString() {
    return file.toString();
  }
}
