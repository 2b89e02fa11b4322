package dev.timebound.bigtable;

/**
 * A response as it came over the wire: the first {@code length} bytes of an array that may be
 * longer, and that the next message may be read into once this one has been given back.
 */
final class Message {
  final byte[] bytes;
  int length;

  Message(byte[] bytes) {
    this.bytes = bytes;
    this.length = bytes.length;
  }
}
