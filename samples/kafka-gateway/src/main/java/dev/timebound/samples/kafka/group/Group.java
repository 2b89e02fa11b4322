package dev.timebound.samples.kafka.group;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.Nullable;

/**
 * The state machine of one group: who is in, which generation, and who of them waits for what. It
 * has no clock, no timer and no lock; the time is handed in, in nanoseconds, and {@link #untilNext}
 * tells when {@link #expire} has something to do. Answers are not given from within, since they may
 * lead to the next request: they are taken by {@link #takeAnswers}.
 *
 * <pre>
 *   EMPTY → PREPARING (members join again) → COMPLETING (the leader assigns) → STABLE
 *               ↑______________________________________________________________|
 * </pre>
 */
final class Group {
  private enum State {
    EMPTY,
    PREPARING,
    COMPLETING,
    STABLE
  }

  private final Supplier<String> ids;
  private final int mostMembers;
  private final long initialDelay;
  private final Map<String, Member> members = new LinkedHashMap<>();

  /** Ids that were given out and have not joined yet, with the end of the wait for each. */
  private final Map<String, Long> promised = new HashMap<>();

  /** Members of this generation that did not ask for their assignment yet. */
  private final Set<String> unsynced = new HashSet<>();

  private final List<Runnable> answers = new ArrayList<>();
  private State state = State.EMPTY;

  /** In the first rebalance of an empty group others that start at the same time are waited for. */
  private boolean gathering;

  private long gatheringEndsAtMost;
  private long rebalanceEnds;
  private long syncEnds;
  private int generation;
  private String protocol = "";
  private String leader = "";

  /**
   * @param ids what makes a member's id unlike all others
   * @param mostMembers {@code >= 1}
   * @param initialDelay how long an empty group waits for further members, {@code >= 0}
   */
  Group(Supplier<String> ids, int mostMembers, Duration initialDelay) {
    this.ids = ids;
    this.mostMembers = mostMembers;
    this.initialDelay = initialDelay.toNanos();
  }

  /** What is to be told, in order; to be run outside of any lock. */
  List<Runnable> takeAnswers() {
    List<Runnable> taken = List.copyOf(answers);
    answers.clear();
    return taken;
  }

  /** Nobody is in it, and nobody is about to be. */
  boolean isUnused() {
    return members.isEmpty() && promised.isEmpty();
  }

  void join(JoinRequest request, long now, Consumer<JoinAnswer> reply) {
    String id = request.memberId();
    Member member = members.get(id);
    if (!Assignors.agree(request, members.values())) {
      answer(reply, JoinAnswer.refused(Errors.INCONSISTENT_GROUP_PROTOCOL, id));
    } else if (member != null) {
      rejoin(member, request, now, reply);
    } else if (id.isEmpty()) {
      joinNew(request, now, reply);
    } else if (promised.remove(id) != null) {
      add(new Member(id, request, now), now, reply);
    } else {
      answer(reply, JoinAnswer.refused(Errors.UNKNOWN_MEMBER_ID, id));
    }
  }

  private void joinNew(JoinRequest request, long now, Consumer<JoinAnswer> reply) {
    if (members.size() + promised.size() >= mostMembers) {
      answer(reply, JoinAnswer.refused(Errors.GROUP_MAX_SIZE_REACHED, ""));
      return;
    }
    String id = request.clientId() + "-" + ids.get();
    if (request.idFirst()) {
      promised.put(id, now + request.sessionTimeout().toNanos());
      answer(reply, JoinAnswer.refused(Errors.MEMBER_ID_REQUIRED, id));
    } else {
      add(new Member(id, request, now), now, reply);
    }
  }

  private void add(Member member, long now, Consumer<JoinAnswer> reply) {
    members.put(member.id, member);
    member.join = reply;
    if (state != State.PREPARING) {
      prepare(now);
      return;
    }
    if (gathering) {
      rebalanceEnds = earlier(now + initialDelay, gatheringEndsAtMost);
    }
    completeWhenAllJoined(now);
  }

  private void rejoin(Member member, JoinRequest request, long now, Consumer<JoinAnswer> reply) {
    member.alive(now);
    boolean same = member.sameProtocols(request.protocols());
    boolean mayStay = state == State.COMPLETING || !member.id.equals(leader);
    if (state != State.PREPARING && same && mayStay) {
      answer(reply, current(member)); // it missed the answer that it had
      return;
    }
    Consumer<JoinAnswer> before = member.join;
    if (before != null) {
      answer(before, JoinAnswer.refused(Errors.REBALANCE_IN_PROGRESS, member.id));
    }
    member.request = request;
    member.join = reply;
    if (state == State.PREPARING) {
      completeWhenAllJoined(now);
    } else {
      prepare(now);
    }
  }

  /** All members are to join again. */
  private void prepare(long now) {
    for (Member member : members.values()) {
      Consumer<SyncAnswer> waiting = member.sync;
      if (waiting != null) {
        member.sync = null;
        member.alive(now);
        answer(waiting, SyncAnswer.refused(Errors.REBALANCE_IN_PROGRESS));
      }
      member.assignment = new byte[0];
    }
    unsynced.clear();
    gathering = state == State.EMPTY && initialDelay > 0;
    state = State.PREPARING;
    rebalanceEnds = now + longestRebalance();
    if (gathering) {
      gatheringEndsAtMost = rebalanceEnds;
      rebalanceEnds = earlier(now + initialDelay, gatheringEndsAtMost);
    }
    completeWhenAllJoined(now);
  }

  private void completeWhenAllJoined(long now) {
    if (!gathering
        && promised.isEmpty()
        && members.values().stream().allMatch(member -> member.join != null)) {
      complete(now);
    }
  }

  /** The next generation, of those that joined. */
  private void complete(long now) {
    members.values().removeIf(member -> member.join == null);
    gathering = false;
    generation++;
    if (members.isEmpty()) {
      state = State.EMPTY;
      protocol = "";
      leader = "";
      return;
    }
    state = State.COMPLETING;
    protocol = Assignors.vote(members.values());
    if (!members.containsKey(leader)) {
      leader = members.keySet().iterator().next();
    }
    unsynced.addAll(members.keySet());
    syncEnds = now + longestRebalance();
    for (Member member : members.values()) {
      Consumer<JoinAnswer> reply = member.join;
      member.join = null;
      member.alive(now);
      if (reply != null) {
        answer(reply, current(member));
      }
    }
  }

  private JoinAnswer current(Member member) {
    Map<String, byte[]> all = new LinkedHashMap<>();
    if (member.id.equals(leader)) {
      members.forEach((id, each) -> all.put(id, each.metadata(protocol)));
    }
    return new JoinAnswer(Errors.NONE, generation, protocol, leader, member.id, all);
  }

  void sync(
      String id,
      int generation,
      Map<String, byte[]> assignments,
      long now,
      Consumer<SyncAnswer> reply) {
    Member member = members.get(id);
    Errors error = check(member, generation);
    if (error == Errors.NONE && state == State.PREPARING) {
      error = Errors.REBALANCE_IN_PROGRESS;
    }
    if (member == null || error != Errors.NONE) {
      answer(reply, SyncAnswer.refused(error));
      return;
    }
    member.alive(now);
    unsynced.remove(id);
    if (state == State.STABLE) {
      answer(reply, new SyncAnswer(Errors.NONE, member.assignment));
      return;
    }
    Consumer<SyncAnswer> before = member.sync;
    if (before != null) {
      answer(before, SyncAnswer.refused(Errors.REBALANCE_IN_PROGRESS));
    }
    member.sync = reply;
    if (id.equals(leader)) {
      assign(assignments, now);
    }
  }

  private void assign(Map<String, byte[]> assignments, long now) {
    state = State.STABLE;
    for (Member member : members.values()) {
      member.assignment = assignments.getOrDefault(member.id, new byte[0]);
      Consumer<SyncAnswer> waiting = member.sync;
      if (waiting != null) {
        member.sync = null;
        member.alive(now);
        answer(waiting, new SyncAnswer(Errors.NONE, member.assignment));
      }
    }
  }

  Errors heartbeat(String id, int generation, long now) {
    Member member = members.get(id);
    Errors error = check(member, generation);
    if (member == null || error != Errors.NONE) {
      return error;
    }
    member.alive(now);
    return state == State.PREPARING ? Errors.REBALANCE_IN_PROGRESS : Errors.NONE;
  }

  /**
   * Whether offsets may be committed: by a member of this generation, and by one that uses the
   * group for its offsets alone (a negative generation) while nobody is in it.
   */
  Errors mayCommit(String id, int generation, long now) {
    if (generation < 0 && members.isEmpty()) {
      return Errors.NONE;
    }
    Member member = members.get(id);
    Errors error = check(member, generation);
    if (member == null || error != Errors.NONE) {
      return error;
    }
    member.alive(now);
    return state == State.COMPLETING ? Errors.REBALANCE_IN_PROGRESS : Errors.NONE;
  }

  private Errors check(@Nullable Member member, int generation) {
    if (member == null) {
      return Errors.UNKNOWN_MEMBER_ID;
    }
    return generation == this.generation ? Errors.NONE : Errors.ILLEGAL_GENERATION;
  }

  Errors leave(String id, long now) {
    if (promised.remove(id) != null) {
      if (state == State.PREPARING) {
        completeWhenAllJoined(now);
      }
      return Errors.NONE;
    }
    if (!members.containsKey(id)) {
      return Errors.UNKNOWN_MEMBER_ID;
    }
    remove(Set.of(id), now);
    return Errors.NONE;
  }

  private void remove(Set<String> ids, long now) {
    for (String id : ids) {
      Member member = members.remove(id);
      if (member != null && member.join != null) {
        answer(member.join, JoinAnswer.refused(Errors.UNKNOWN_MEMBER_ID, id));
      }
      if (member != null && member.sync != null) {
        answer(member.sync, SyncAnswer.refused(Errors.UNKNOWN_MEMBER_ID));
      }
    }
    if (state == State.PREPARING) {
      completeWhenAllJoined(now);
    } else {
      prepare(now);
    }
  }

  /** The client went while it waited for an answer: its session runs from now on. */
  void abandoned(Object reply, long now) {
    for (Member member : members.values()) {
      if (member.join == reply) {
        member.join = null;
        member.alive(now);
      } else if (member.sync == reply) {
        member.sync = null;
        member.alive(now);
      }
    }
  }

  /** Does what the time has come for. */
  void expire(long now) {
    if (promised.values().removeIf(ends -> now - ends >= 0) && state == State.PREPARING) {
      completeWhenAllJoined(now);
    }
    Set<String> gone =
        members.values().stream()
            .filter(member -> !member.isWaiting() && now - member.sessionEnds >= 0)
            .map(member -> member.id)
            .collect(Collectors.toCollection(HashSet::new));
    if (!unsynced.isEmpty() && now - syncEnds >= 0) {
      gone.addAll(unsynced);
    }
    if (!gone.isEmpty()) {
      remove(gone, now);
    }
    if (state == State.PREPARING && now - rebalanceEnds >= 0) {
      complete(now);
    }
  }

  /** The nanoseconds until {@link #expire} has something to do, {@code >= 0}; −1 for never. */
  long untilNext(long now) {
    long next = Long.MAX_VALUE;
    for (long ends : promised.values()) {
      next = Math.min(next, ends - now);
    }
    for (Member member : members.values()) {
      if (!member.isWaiting()) {
        next = Math.min(next, member.sessionEnds - now);
      }
    }
    if (state == State.PREPARING) {
      next = Math.min(next, rebalanceEnds - now);
    }
    if (!unsynced.isEmpty()) {
      next = Math.min(next, syncEnds - now);
    }
    return next == Long.MAX_VALUE ? -1 : Math.max(0, next);
  }

  private long longestRebalance() {
    return members.values().stream()
        .mapToLong(member -> member.request.rebalanceTimeout().toNanos())
        .max()
        .orElse(0);
  }

  private static long earlier(long one, long other) {
    return one - other < 0 ? one : other;
  }

  private <T> void answer(Consumer<T> reply, T answer) {
    answers.add(() -> reply.accept(answer));
  }
}
