package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnsafeByteOperations;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads the cell chunks of a ReadRowsResponse straight from its bytes, one at a time and into the
 * same fields: a message makes no object for a chunk, a name or a wrapper. Follows the generated
 * parser to the letter (the last of a repeated field counts, unknown fields are passed over,
 * strings must be UTF-8), but for groups, which no message of this protocol has: it refuses them.
 */
final class ChunkCursor {
  // field number << 3 | wire type
  private static final int CHUNKS = 1 << 3 | 2;
  private static final int LAST_SCANNED_ROW_KEY = 2 << 3 | 2;
  private static final int ROW_KEY = 1 << 3 | 2;
  private static final int FAMILY_NAME = 2 << 3 | 2;
  private static final int QUALIFIER = 3 << 3 | 2;
  private static final int TIMESTAMP_MICROS = 4 << 3;
  private static final int LABELS = 5 << 3 | 2;
  private static final int VALUE = 6 << 3 | 2;
  private static final int VALUE_SIZE = 7 << 3;
  private static final int RESET_ROW = 8 << 3;
  private static final int COMMIT_ROW = 9 << 3;
  private static final int WRAPPED = 1 << 3 | 2;

  private static final byte[] NOTHING = {};

  private byte[] message = NOTHING;
  private int messageEnd;
  private int at;

  /** Empty where the message has no scan marker. */
  final Span scanned = new Span();

  // the chunk in hand

  /** Empty where the chunk does not name its row. */
  final Span rowKey = new Span();

  boolean hasFamily;
  final Span family = new Span();
  boolean hasQualifier;
  final Span qualifier = new Span();
  long timestampMicros;
  List<String> labels = List.of();
  final Span value = new Span();
  int valueSize;
  boolean reset;
  boolean commit;

  /** Takes a message; its scan marker is known at once, since it comes before its chunks. */
  void open(byte[] message, int length) throws InvalidProtocolBufferException {
    this.message = message;
    this.messageEnd = length;
    this.at = 0;
    scanned.clear();
    while (at < messageEnd) {
      int tag = (int) varint(messageEnd);
      if (tag == LAST_SCANNED_ROW_KEY) {
        span(scanned, messageEnd);
      } else {
        skip(tag, messageEnd);
      }
    }
    at = 0;
  }

  /** Lets go of the message. */
  void close() {
    message = NOTHING;
    messageEnd = 0;
    at = 0;
    scanned.clear();
    rowKey.clear();
    family.clear();
    qualifier.clear();
    value.clear();
  }

  /** Moves to the next chunk; false where there is none left. */
  boolean next() throws InvalidProtocolBufferException {
    while (at < messageEnd) {
      int tag = (int) varint(messageEnd);
      if (tag == CHUNKS) {
        int length = length(messageEnd);
        read(at + length);
        return true;
      }
      skip(tag, messageEnd);
    }
    return false;
  }

  private void read(int end) throws InvalidProtocolBufferException {
    rowKey.clear();
    hasFamily = false;
    hasQualifier = false;
    timestampMicros = 0;
    labels = List.of();
    value.clear();
    valueSize = 0;
    reset = false;
    commit = false;
    while (at < end) {
      int tag = (int) varint(end);
      switch (tag) {
        case ROW_KEY -> span(rowKey, end);
        case FAMILY_NAME -> {
          if (!hasFamily) {
            hasFamily = true;
            family.clear();
          }
          wrapped(family, end);
        }
        case QUALIFIER -> {
          if (!hasQualifier) {
            hasQualifier = true;
            qualifier.clear();
          }
          wrapped(qualifier, end);
        }
        case TIMESTAMP_MICROS -> timestampMicros = varint(end);
        case LABELS -> label(end);
        case VALUE -> span(value, end);
        case VALUE_SIZE -> valueSize = (int) varint(end);
        case RESET_ROW -> {
          reset = varint(end) != 0;
          commit = false;
        }
        case COMMIT_ROW -> {
          commit = varint(end) != 0;
          reset = false;
        }
        default -> skip(tag, end);
      }
    }
  }

  private void span(Span span, int end) throws InvalidProtocolBufferException {
    int length = length(end);
    span.set(message, at, length);
    at += length;
  }

  /** The value of a StringValue or BytesValue. */
  private void wrapped(Span span, int end) throws InvalidProtocolBufferException {
    int length = length(end);
    int inner = at + length;
    while (at < inner) {
      int tag = (int) varint(inner);
      if (tag == WRAPPED) {
        span(span, inner);
      } else {
        skip(tag, inner);
      }
    }
  }

  private void label(int end) throws InvalidProtocolBufferException {
    Span span = new Span();
    span(span, end);
    if (labels.isEmpty()) {
      labels = new ArrayList<>(2);
    }
    labels.add(text(span.copy()));
  }

  /** Takes the array as it is. */
  static String text(byte[] utf8) throws InvalidProtocolBufferException {
    ByteString bytes = UnsafeByteOperations.unsafeWrap(utf8);
    if (!bytes.isValidUtf8()) {
      throw malformed("a string that is no UTF-8");
    }
    return bytes.toStringUtf8();
  }

  private void skip(int tag, int end) throws InvalidProtocolBufferException {
    if (tag >>> 3 == 0) {
      throw malformed("a field without a number");
    }
    switch (tag & 7) {
      case 0 -> varint(end);
      case 1 -> skipBytes(8, end);
      case 2 -> skipBytes(length(end), end);
      case 5 -> skipBytes(4, end);
      default -> throw malformed("an unknown wire type");
    }
  }

  private void skipBytes(int n, int end) throws InvalidProtocolBufferException {
    if (n > end - at) {
      throw malformed("cut short");
    }
    at += n;
  }

  private int length(int end) throws InvalidProtocolBufferException {
    int length = (int) varint(end);
    if (length < 0 || length > end - at) {
      throw malformed("a length beyond its end");
    }
    return length;
  }

  private long varint(int end) throws InvalidProtocolBufferException {
    byte[] in = message;
    int i = at;
    if (i < end && in[i] >= 0) {
      at = i + 1;
      return in[i];
    }
    long value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (i >= end) {
        throw malformed("cut short");
      }
      byte b = in[i++];
      value |= (long) (b & 0x7f) << shift;
      if (b >= 0) {
        at = i;
        return value;
      }
    }
    throw malformed("an endless number");
  }

  private static InvalidProtocolBufferException malformed(String what) {
    return new InvalidProtocolBufferException(what);
  }
}
