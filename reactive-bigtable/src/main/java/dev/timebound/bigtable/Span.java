package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.util.Arrays;

/**
 * A part of the message in hand, not copied. Reused from chunk to chunk: what outlives the message
 * is copied out of it, since a slice would hold on to all of it.
 */
final class Span {
  private static final byte[] NOTHING = {};

  private byte[] in = NOTHING;
  private int at;
  private int length;

  void clear() {
    in = NOTHING;
    at = 0;
    length = 0;
  }

  void set(byte[] in, int at, int length) {
    this.in = in;
    this.at = at;
    this.length = length;
  }

  boolean isEmpty() {
    return length == 0;
  }

  int length() {
    return length;
  }

  boolean isEqualTo(byte[] bytes) {
    return Arrays.equals(in, at, at + length, bytes, 0, bytes.length);
  }

  /** In the order of row keys. */
  int compareTo(byte[] bytes) {
    return Arrays.compareUnsigned(in, at, at + length, bytes, 0, bytes.length);
  }

  byte[] copy() {
    return Arrays.copyOfRange(in, at, at + length);
  }

  void copyTo(byte[] target, int targetAt) {
    System.arraycopy(in, at, target, targetAt, length);
  }

  ByteString copyToByteString() {
    return length == 0 ? ByteString.EMPTY : UnsafeByteOperations.unsafeWrap(copy());
  }
}
