package dev.timebound.samples.kafka.group;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.test.scheduler.VirtualTimeScheduler;

@NullUnmarked // fields are set before each test
class GroupCoordinatorTest {
  private static final Duration SESSION = Duration.ofSeconds(10);
  private static final Duration REBALANCE = Duration.ofSeconds(60);
  private static final Duration DELAY = Duration.ofSeconds(3);
  private static final String GROUP = "g";

  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final GroupCoordinator groups = new GroupCoordinator(time, DELAY);

  @AfterEach
  void nothingIsLeft() {
    groups.dispose();
    assertThat(groups.size()).isZero();
    time.dispose();
  }

  /** One consumer as it behaves. */
  private final class Consumer {
    final List<JoinAnswer> joins = new ArrayList<>();
    final List<SyncAnswer> syncs = new ArrayList<>();
    private final Map<String, byte[]> protocols = new LinkedHashMap<>();
    String id = "";
    Disposable joining = () -> {};

    Consumer(String... assignors) {
      for (String assignor : assignors) {
        protocols.put(assignor, assignor.getBytes(UTF_8));
      }
    }

    Consumer join() {
      return join(false);
    }

    Consumer join(boolean idFirst) {
      joining =
          groups
              .join(
                  GROUP,
                  new JoinRequest(id, "client", idFirst, SESSION, REBALANCE, "consumer", protocols))
              .subscribe(
                  answer -> {
                    joins.add(answer);
                    id = answer.memberId();
                  });
      return this;
    }

    JoinAnswer joined() {
      return joins.get(joins.size() - 1);
    }

    boolean leads() {
      return joined().leader().equals(id);
    }

    /** A leader gives each member its own name. */
    Consumer sync() {
      Map<String, byte[]> assignments = new LinkedHashMap<>();
      joined()
          .members()
          .keySet()
          .forEach(member -> assignments.put(member, member.getBytes(UTF_8)));
      groups.sync(GROUP, id, joined().generation(), assignments).subscribe(syncs::add);
      return this;
    }

    String assigned() {
      return new String(syncs.get(syncs.size() - 1).assignment(), UTF_8);
    }

    Errors heartbeat() {
      return groups.heartbeat(GROUP, id, joined().generation()).block();
    }

    Errors mayCommit() {
      return groups.mayCommit(GROUP, id, joined().generation()).block();
    }

    Errors leave() {
      return groups.leave(GROUP, id).block();
    }
  }

  private Consumer consumer() {
    return new Consumer("range");
  }

  private List<Consumer> stableGroup(int size) {
    List<Consumer> all = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      all.add(consumer().join());
    }
    time.advanceTimeBy(DELAY);
    all.forEach(Consumer::sync);
    return all;
  }

  @Nested
  class Joining {
    @Test
    @DisplayName("those that start at the same time are one generation: an empty group waits")
    void gathers() {
      Consumer one = consumer().join();
      time.advanceTimeBy(Duration.ofSeconds(2));
      Consumer other = consumer().join();
      time.advanceTimeBy(Duration.ofMillis(2999));
      assertThat(one.joins).isEmpty();
      time.advanceTimeBy(Duration.ofMillis(1));

      assertThat(one.joined().error()).isEqualTo(Errors.NONE);
      assertThat(one.joined().generation()).isEqualTo(other.joined().generation());
      assertThat(one.leads()).isTrue();
      assertThat(one.joined().members()).containsOnlyKeys(one.id, other.id);
      assertThat(other.joined().members()).isEmpty();
    }

    @Test
    @DisplayName("a new member is given its id first where its version asks for that")
    void idFirst() {
      Consumer consumer = consumer().join(true);
      assertThat(consumer.joined().error()).isEqualTo(Errors.MEMBER_ID_REQUIRED);
      assertThat(consumer.id).startsWith("client-");
      consumer.join(true);
      time.advanceTimeBy(DELAY);

      assertThat(consumer.joined().error()).isEqualTo(Errors.NONE);
    }

    @Test
    @DisplayName("an id that is not used in time is forgotten, and holds nobody")
    void promisedInVain() {
      consumer().join(true);
      Consumer other = consumer().join();
      time.advanceTimeBy(SESSION);
      assertThat(other.joined().error()).isEqualTo(Errors.NONE);

      Consumer late = consumer();
      late.id = "client-of-old";
      late.join();
      assertThat(late.joined().error()).isEqualTo(Errors.UNKNOWN_MEMBER_ID);
    }

    @Test
    @DisplayName(
        "a member without an assignor that all have is refused; of those common the one"
            + " liked best is taken")
    void assignors() {
      Consumer one = new Consumer("sticky", "range").join();
      Consumer other = new Consumer("range", "sticky").join();
      Consumer third = new Consumer("range", "sticky").join();
      Consumer alien = new Consumer("roundrobin").join();
      time.advanceTimeBy(DELAY);

      assertThat(alien.joined().error()).isEqualTo(Errors.INCONSISTENT_GROUP_PROTOCOL);
      assertThat(one.joined().protocol()).isEqualTo("range");
      assertThat(other.joined().protocol()).isEqualTo("range");
      assertThat(third.joins).hasSize(1);
      assertThat(new String(one.joined().members().get(one.id), UTF_8)).isEqualTo("range");
    }
  }

  @Nested
  class Assigning {
    @Test
    @DisplayName("each gets what the leader assigned, those that asked before it too")
    void assigned() {
      Consumer leader = consumer().join();
      Consumer other = consumer().join();
      time.advanceTimeBy(DELAY);
      other.sync();
      assertThat(other.syncs).isEmpty();
      leader.sync();

      assertThat(leader.assigned()).isEqualTo(leader.id);
      assertThat(other.assigned()).isEqualTo(other.id);
    }

    @Test
    @DisplayName("a member of an earlier generation is told so, and a stranger too")
    void stale() {
      Consumer member = stableGroup(1).get(0);
      assertThat(member.heartbeat()).isEqualTo(Errors.NONE);
      assertThat(groups.heartbeat(GROUP, member.id, 99).block())
          .isEqualTo(Errors.ILLEGAL_GENERATION);
      assertThat(groups.heartbeat(GROUP, "stranger", 1).block())
          .isEqualTo(Errors.UNKNOWN_MEMBER_ID);
      assertThat(groups.heartbeat("no group", "stranger", 1).block())
          .isEqualTo(Errors.UNKNOWN_MEMBER_ID);
      assertThat(groups.size()).isEqualTo(1);
    }

    @Test
    @DisplayName("a leader that never assigns is taken out, and another one leads")
    void silentLeader() {
      Consumer leader = consumer().join();
      Consumer other = consumer().join();
      time.advanceTimeBy(DELAY);
      other.sync();
      time.advanceTimeBy(SESSION);
      assertThat(other.syncs.get(0).error()).isEqualTo(Errors.REBALANCE_IN_PROGRESS);
      other.join();

      assertThat(other.joined().error()).isEqualTo(Errors.NONE);
      assertThat(other.leads()).isTrue();
      assertThat(leader.heartbeat()).isEqualTo(Errors.UNKNOWN_MEMBER_ID);
    }
  }

  @Nested
  class Rebalancing {
    @Test
    @DisplayName("a new member begins a rebalance, which the others learn of by their heartbeats")
    void newMember() {
      Consumer one = stableGroup(1).get(0);
      Consumer other = consumer().join();
      assertThat(one.heartbeat()).isEqualTo(Errors.REBALANCE_IN_PROGRESS);
      assertThat(one.mayCommit()).isEqualTo(Errors.NONE);
      one.join();

      assertThat(one.joined().generation()).isEqualTo(other.joined().generation());
      assertThat(one.mayCommit()).isEqualTo(Errors.REBALANCE_IN_PROGRESS);
      other.sync();
      one.sync();
      assertThat(other.assigned()).isEqualTo(other.id);
      assertThat(one.mayCommit()).isEqualTo(Errors.NONE);
    }

    @Test
    @DisplayName("one that does not join again in time is left out")
    void leftOut() {
      List<Consumer> all = stableGroup(2);
      Consumer third = consumer().join();
      all.get(0).join();
      for (int i = 0; i < 12; i++) { // alive, but it does not join
        all.get(1).heartbeat();
        time.advanceTimeBy(Duration.ofSeconds(5));
      }

      assertThat(third.joined().error()).isEqualTo(Errors.NONE);
      assertThat(all.get(0).joined().members()).containsOnlyKeys(all.get(0).id, third.id);
      assertThat(all.get(1).heartbeat()).isEqualTo(Errors.UNKNOWN_MEMBER_ID);
    }

    @Test
    @DisplayName("one without a sign of life is taken out")
    void sessionEnds() {
      List<Consumer> all = stableGroup(2);
      time.advanceTimeBy(SESSION.minusMillis(1));
      assertThat(all.get(0).heartbeat()).isEqualTo(Errors.NONE);
      time.advanceTimeBy(Duration.ofMillis(1));
      assertThat(all.get(0).heartbeat()).isEqualTo(Errors.REBALANCE_IN_PROGRESS);
      all.get(0).join();

      assertThat(all.get(0).joined().members()).containsOnlyKeys(all.get(0).id);
    }

    @Test
    @DisplayName("one that leaves is gone at once; with the last one the group is forgotten")
    void leaves() {
      List<Consumer> all = stableGroup(2);
      assertThat(all.get(0).leave()).isEqualTo(Errors.NONE);
      assertThat(all.get(0).leave()).isEqualTo(Errors.UNKNOWN_MEMBER_ID);
      assertThat(all.get(1).heartbeat()).isEqualTo(Errors.REBALANCE_IN_PROGRESS);
      assertThat(all.get(1).leave()).isEqualTo(Errors.NONE);

      assertThat(groups.size()).isZero();
    }

    @Test
    @DisplayName(
        "a follower that joins again as it was gets its answer without a rebalance; the"
            + " leader begins one")
    void joinsAgain() {
      List<Consumer> all = stableGroup(2);
      Consumer follower = all.get(0).leads() ? all.get(1) : all.get(0);
      Consumer leader = all.get(0).leads() ? all.get(0) : all.get(1);
      int generation = leader.joined().generation();
      follower.join();
      assertThat(follower.joined().generation()).isEqualTo(generation);
      assertThat(leader.heartbeat()).isEqualTo(Errors.NONE);

      leader.join();
      assertThat(follower.heartbeat()).isEqualTo(Errors.REBALANCE_IN_PROGRESS);
      follower.join();
      assertThat(leader.joined().generation()).isEqualTo(generation + 1);
    }

    @Test
    @DisplayName("a client that goes while it waits to join is taken out when its session ends")
    void goesWhileJoining() {
      Consumer member = stableGroup(1).get(0);
      Consumer gone = consumer().join();
      gone.joining.dispose();
      member.join();
      assertThat(member.joins).hasSize(1);
      time.advanceTimeBy(SESSION);

      assertThat(member.joins).hasSize(2);
      assertThat(member.joined().members()).containsOnlyKeys(member.id);
    }
  }

  @Nested
  class Committing {
    @Test
    @DisplayName("who only keeps offsets may commit while nobody is in the group")
    void withoutMembers() {
      assertThat(groups.mayCommit(GROUP, "", -1).block()).isEqualTo(Errors.NONE);
      assertThat(groups.size()).isZero();
      stableGroup(1);
      assertThat(groups.mayCommit(GROUP, "", -1).block()).isEqualTo(Errors.UNKNOWN_MEMBER_ID);
    }
  }
}
