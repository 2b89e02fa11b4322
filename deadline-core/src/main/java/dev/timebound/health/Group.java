package dev.timebound.health;

import java.time.Duration;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** The choice, the reports and the reading of a group; what the reports lead to is the driver's. */
final class Group<M extends Member> implements HealthGroup<M>, Driver.Host<M> {
  private final String name;
  private final HealthPolicy policy;
  private final Picker picker;
  private final Roster<M> roster;
  private final Driver<M> driver;

  Group(String name, HealthPolicy policy, EngineParts parts, long seed) {
    this.name = name;
    this.policy = policy;
    this.picker = new Picker(seed);
    this.roster = new Roster<>(name);
    this.driver = new Driver<>(name, policy, parts, Mix.mix(seed), roster, this);
  }

  @Override
  public String name() {
    return name;
  }

  // --- the choice

  @Override
  public @Nullable Claim<M> pick(Predicate<? super M> exclude, @Nullable FailHandle failHandle) {
    Snapshot<M> s = roster.snapshot();
    while (true) {
      for (Slot<M> slot : s.halfOpen) {
        if (!exclude.test(slot.member) && slot.takeTrial()) {
          slot.claim();
          OpenClaim<M> claim = register(slot, failHandle, true, slot.round, false);
          if (claim != null) {
            return claim;
          }
        }
      }
      Slot<M> slot = claimLeast(s.inService, exclude);
      boolean out = slot == null;
      if (slot == null && !policy.ownFallback) {
        slot = claimLeast(s.everyone(), exclude);
      }
      if (slot == null) {
        return null;
      }
      OpenClaim<M> claim = register(slot, failHandle, true, 0, out);
      if (claim != null) {
        return claim;
      }
      // it went out or left this very moment, and the snapshot may not tell yet
      s = s.refreshed();
    }
  }

  private @Nullable Slot<M> claimLeast(Slot<M>[] slots, Predicate<? super M> exclude) {
    Slot<M> slot = picker.claimLeast(slots, exclude);
    return slot != null ? slot : picker.claimLeast(slots, any -> false);
  }

  @Override
  public Candidates<M> inOrder(List<? extends M> order, @Nullable FailHandle failHandle) {
    return new Cursor<>(this, order, failHandle);
  }

  Snapshot<M> snapshot() {
    return roster.snapshot();
  }

  boolean hasOwnFallback() {
    return policy.ownFallback;
  }

  /**
   * Registers a claim that is counted already. The status is read after the claim stands among the
   * open ones, and a quarantine reads those after it has set the status: one of the two sees the
   * other (BT-15).
   *
   * @param out it was chosen although it is out of service
   * @return null where it was chosen as one in service and is not, or left; the count is undone
   */
  @Nullable OpenClaim<M> register(
      Slot<M> slot, @Nullable FailHandle failHandle, boolean first, int trial, boolean out) {
    OpenClaim<M> claim = new OpenClaim<>(this, slot, failHandle, first, trial);
    slot.claims.add(claim, slot.open, claim);
    boolean moved = slot.left || (!out && slot.status == MemberStatus.QUARANTINED);
    // where a quarantine was faster in ending it, its fail handle tells the adapter
    if (moved && claim.ends()) {
      release(claim);
      return null;
    }
    return claim;
  }

  // --- reports

  void someoneWaits() {
    driver.someoneWaits();
  }

  void succeeded(OpenClaim<M> claim) {
    release(claim);
    if (claim.slot.watched) {
      driver.signal(new Signal.Ended(claim.slot.id, null, null, claim.first, claim.trial));
    }
  }

  void failed(OpenClaim<M> claim, FailureKind kind, @Nullable Throwable cause) {
    Slot<M> slot = claim.slot;
    if (policy.penaltyWeight > 0 && !driver.isClosed() && !driver.isDryRun()) {
      // at once and not by the drain, which another thread may be busy with (BT-4)
      slot.extra = Math.max(slot.extra, policy.penaltyWeight);
    }
    release(claim);
    driver.signal(new Signal.Ended(slot.id, kind, cause, claim.first, claim.trial));
  }

  void cancelled(OpenClaim<M> claim) {
    release(claim);
    if (claim.trial != 0) {
      driver.signal(new Signal.TrialCancelled(claim.slot.id, claim.trial));
    }
  }

  @Override
  public void release(OpenClaim<M> claim) {
    claim.forget();
    if (claim.slot.release() == 0 && claim.slot.left) {
      drained(claim.slot);
    }
  }

  // --- members

  @Override
  public void add(M member) {
    roster.add(member, slot -> driver.signal(new Signal.Joined(slot.id, slot.name)));
  }

  @Override
  public Mono<Void> remove(M member) {
    Slot<M> slot = roster.leave(member);
    if (slot == null) {
      Slot<M> gone = roster.leaving(member);
      return gone == null ? Mono.empty() : gone.drained.asMono();
    }
    left(slot);
    return slot.drained.asMono();
  }

  @Override
  public boolean replace(Slot<M> old, M by, String name) {
    if (!roster.replace(old, by, name, s -> driver.signal(new Signal.Joined(s.id, s.name)))) {
      return false;
    }
    left(old);
    return true;
  }

  private void left(Slot<M> slot) {
    driver.signal(new Signal.Left(slot.id));
    if (slot.open == 0) {
      drained(slot);
    }
  }

  private void drained(Slot<M> slot) {
    if (slot.go()) {
      roster.drained(slot);
      driver.signal(new Signal.Drained(slot.id));
      driver.surely(slot.drained::tryEmitEmpty);
    }
  }

  // --- reading

  @Override
  public Collection<MemberHealth> members() {
    GroupState known = driver.state();
    return roster.snapshot().all.stream().map(s -> health(s, known)).toList();
  }

  @Override
  public @Nullable MemberHealth health(String member) {
    for (Slot<M> s : roster.snapshot().all) {
      if (s.name.equals(member)) {
        return health(s, driver.state());
      }
    }
    return null;
  }

  private MemberHealth health(Slot<M> s, GroupState known) {
    MemberState m = known.get(s.id);
    Duration silence = m == null ? Duration.ZERO : Duration.ofNanos(m.silence());
    int quarantines = m == null ? 0 : m.quarantines();
    // what would be, where a dry run holds the slot as it is
    MemberStatus status = m == null || !driver.isDryRun() ? s.status : m.status();
    return new MemberHealth(s.name, status, s.open, s.extra, silence, quarantines);
  }

  @Override
  public int openClaims() {
    int open = 0;
    for (Slot<M> s : roster.watched()) {
      open += s.open;
    }
    return open;
  }

  /** As in {@code bigtable{healthy=9, quarantined=1, open=42}}. */
  @Override
  public String toString() {
    EnumMap<MemberStatus, Integer> counts = new EnumMap<>(MemberStatus.class);
    members().forEach(m -> counts.merge(m.status(), 1, Integer::sum));
    StringBuilder text = new StringBuilder(name).append('{');
    counts.forEach(
        (status, n) ->
            text.append(status.name().toLowerCase(Locale.ROOT)).append('=').append(n).append(", "));
    return text.append("open=").append(openClaims()).append('}').toString();
  }

  void close() {
    driver.close();
  }
}
