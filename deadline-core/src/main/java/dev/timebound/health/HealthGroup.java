package dev.timebound.health;

import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** The members an adapter chooses among, and what the engine knows of them. Thread-safe. */
public interface HealthGroup<M extends Member> {
  String name();

  /**
   * Puts a member into the choice, healthy. Throws IllegalArgumentException where its name is
   * taken.
   */
  void add(M member);

  /**
   * Takes a member out of the choice at once; none of its open requests is touched. The Mono (hot:
   * the removal happens at this call, subscribed or not) completes when the last of them has ended.
   */
  Mono<Void> remove(M member);

  /**
   * Claims the member with the least load (open claims + penalty), random among equals. Members for
   * which {@code exclude} is true are avoided while another is in service; it is asked of as few as
   * may be, and must have no side effects. Where every member is out of service the least loaded is
   * given all the same, unless the policy says that the adapter has its own fallback.
   *
   * @param failHandle how a quarantine ends this request; null where the adapter lets it run
   * @return null only where the group is empty, or all are out and the adapter has its own fallback
   */
  @Nullable Claim<M> pick(Predicate<? super M> exclude, @Nullable FailHandle failHandle);

  /** The same in the adapter's own order. */
  Candidates<M> inOrder(List<? extends M> order, @Nullable FailHandle failHandle);

  /** Every member in the group now, in the order they were added. */
  Collection<MemberHealth> members();

  /** What is known of one member; null where it is not in the group. */
  @Nullable MemberHealth health(String member);

  /** Open claims over all members, those that have left included. */
  int openClaims();
}
