package dev.timebound.samples.kafka.group;

import java.util.Arrays;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** One consumer of a group, as the group sees it. Not thread-safe. */
final class Member {
  final String id;
  JoinRequest request;
  byte[] assignment = {};

  /** When it is taken out, unless it gives a sign of life before. */
  long sessionEnds;

  /** It waits for the rebalance to end. */
  @Nullable Consumer<JoinAnswer> join;

  /** It waits for its assignment. */
  @Nullable Consumer<SyncAnswer> sync;

  Member(String id, JoinRequest request, long now) {
    this.id = id;
    this.request = request;
    alive(now);
  }

  void alive(long now) {
    sessionEnds = now + request.sessionTimeout().toNanos();
  }

  /** One whose answer is still due is alive: it cannot say more until it has it. */
  boolean isWaiting() {
    return join != null || sync != null;
  }

  /** Whether a group goes on as it is where the member joins again with this. */
  boolean sameProtocols(Map<String, byte[]> others) {
    if (!request.protocols().keySet().equals(others.keySet())) {
      return false;
    }
    return others.entrySet().stream()
        .allMatch(e -> Arrays.equals(request.protocols().get(e.getKey()), e.getValue()));
  }

  byte[] metadata(String protocol) {
    byte[] metadata = request.protocols().get(protocol);
    return metadata == null ? new byte[0] : metadata;
  }
}
