package dev.timebound.samples.kafka.group;

import org.apache.kafka.common.protocol.Errors;

/**
 * What a member that asks for its assignment is told.
 *
 * @param assignment the member's, as the group's leader wrote it; empty with an error
 */
@SuppressWarnings("ArrayRecordComponent") // opaque bytes, passed on
public record SyncAnswer(Errors error, byte[] assignment) {
  private static final byte[] NONE = {};

  static SyncAnswer refused(Errors error) {
    return new SyncAnswer(error, NONE);
  }
}
