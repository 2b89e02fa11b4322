package dev.timebound.health;

import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Decides which members of which groups (channels of a pool, shards of a ring, readers) get
 * requests: adapters report how their requests fare, the engine decides, and acts through callbacks
 * (HE-1). One may serve a whole application. It has no thread of its own: time and callbacks run on
 * a Reactor Scheduler, decisions on the thread whose report led to them. Thread-safe.
 */
public final class HealthEngine implements Disposable, AutoCloseable {
  private final EngineParts parts;
  private final long seed;
  private final Map<String, Group<?>> groups = new ConcurrentHashMap<>();
  private final Map<String, KeyedGroup<?>> keyed = new ConcurrentHashMap<>();
  private volatile boolean disposed;

  private HealthEngine(Builder b) {
    Scheduler scheduler = b.scheduler == null ? Schedulers.parallel() : b.scheduler;
    Meters meters = b.meters == null ? Meters.NONE : new MicrometerMeters(b.meters);
    this.parts =
        new EngineParts(scheduler, new Clock(scheduler), new Telling(scheduler, meters), b.dryRun);
    this.seed = b.seed == null ? ThreadLocalRandom.current().nextLong() : b.seed;
  }

  public static Builder builder() {
    return new Builder();
  }

  /**
   * Makes a group, empty at first.
   *
   * @throws IllegalArgumentException where the name is blank or taken
   * @throws IllegalStateException where the engine is closed
   */
  public <M extends Member> HealthGroup<M> group(String name, HealthPolicy policy) {
    free(name, keyed);
    Objects.requireNonNull(policy, "policy");
    Group<M> group = new Group<>(name, policy, parts, seed ^ Mix.mix(name.hashCode()));
    if (groups.putIfAbsent(name, group) != null) {
      group.close();
      throw taken(name);
    }
    if (disposed) { // meanwhile, and whoever did it may not have seen this one
      groups.remove(name, group);
      group.close();
      throw closed(name);
    }
    parts.telling().grouped(group);
    return group;
  }

  /**
   * Makes a group of things without a claim or a probe, known by their keys and only while they
   * have a history (HE-13a): very many may come and go.
   *
   * @param penalty how long a key is held back from its last failure, {@code > 0}; an answer ends
   *     it before
   * @param most how many keys are held at once, {@code >= 1}; beyond it the one whose last failure
   *     is oldest goes
   * @throws IllegalArgumentException where the name is blank or taken, or a value out of its range
   * @throws IllegalStateException where the engine is closed
   */
  public <K> KeyedHealth<K> keyed(String name, Duration penalty, int most) {
    free(name, groups);
    long nanos = Clock.nanos(Settings.positive("penalty", penalty));
    KeyedGroup<K> group = new KeyedGroup<>(name, nanos, Settings.atLeast("most", most, 1), parts);
    if (keyed.putIfAbsent(name, group) != null) {
      group.close();
      throw taken(name);
    }
    if (disposed) {
      keyed.remove(name, group);
      group.close();
      throw closed(name);
    }
    parts.telling().keyed(group);
    return group;
  }

  private void free(String name, Map<String, ?> others) {
    Settings.name("group", name);
    if (disposed) {
      throw closed(name);
    }
    if (others.containsKey(name)) {
      throw taken(name);
    }
  }

  private static IllegalStateException closed(String name) {
    return new IllegalStateException("group " + name + ": the health engine is closed");
  }

  private static IllegalArgumentException taken(String name) {
    return Settings.refused(
        "group", name, "not yet in this engine; a second pool needs a name of its own");
  }

  /**
   * Lets a group go, when the adapter that made it is closed: it stops probing, measuring and
   * telling, its meters are removed, and its name is free again. It still chooses by load, and its
   * open claims still end. Does nothing where the group is not of this engine.
   */
  public void remove(HealthGroup<?> group) {
    if (group instanceof Group<?> ours && groups.remove(ours.name(), ours)) {
      parts.telling().ungrouped(ours.name());
      ours.close();
    }
  }

  /** Lets a keyed group go: it learns nothing more. As {@link #remove(HealthGroup)}. */
  public void remove(KeyedHealth<?> group) {
    if (group instanceof KeyedGroup<?> ours && keyed.remove(ours.name(), ours)) {
      parts.telling().ungrouped(ours.name());
      ours.close();
    }
  }

  /** All keyed groups, by no particular order. */
  public Collection<KeyedHealth<?>> keyedGroups() {
    return List.copyOf(keyed.values());
  }

  /** All groups, by no particular order. */
  public Collection<HealthGroup<?>> groups() {
    return List.copyOf(groups.values());
  }

  /** Its groups by name, each as {@link HealthGroup} shows itself. */
  @Override
  public String toString() {
    Map<String, Object> all = new TreeMap<>(groups);
    all.putAll(keyed);
    return "HealthEngine" + all.values();
  }

  /**
   * Every change from the moment of subscription on (HE-9); completes when the engine is closed.
   * Hot and multicast. Delivered on the engine's Scheduler, in order within a group; each listener
   * has a buffer of its own, of 256, and one too slow loses the oldest of what it has not taken. A
   * listener that throws ends its own subscription and nothing else; one that blocks holds a thread
   * of that Scheduler, so let it run elsewhere, by {@code publishOn}.
   */
  public Flux<HealthEvent> events() {
    return parts.telling().events();
  }

  /**
   * The last 500 decisions of all groups, oldest first, each with the figure that led to it and the
   * group's figure beside it (HE-13). What was decided and not done is among them: held back by the
   * cap, by the rate of replacements, or by a dry run. Penalties are not: they are counted.
   */
  public List<Decision> decisions() {
    return parts.telling().decisions();
  }

  /**
   * Stops probing, measuring and telling. Groups still choose by load, with every member as it
   * stands, and open claims still count and end.
   */
  @Override
  public void dispose() {
    disposed = true;
    groups.values().forEach(Group::close);
    keyed.values().forEach(KeyedGroup::close);
    parts.telling().close();
  }

  @Override
  public void close() {
    dispose();
  }

  @Override
  public boolean isDisposed() {
    return disposed;
  }

  /** Not thread-safe. */
  public static final class Builder {
    private @Nullable Scheduler scheduler;
    private @Nullable MeterRegistry meters;
    private @Nullable Long seed;
    private boolean dryRun;

    private Builder() {}

    /** Clock, timers and callbacks; never disposed by the engine. Default: the parallel one. */
    public Builder scheduler(Scheduler scheduler) {
      this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
      return this;
    }

    /** Where the meters of all groups go. Default: nowhere. */
    public Builder meters(MeterRegistry registry) {
      this.meters = Objects.requireNonNull(registry, "meters");
      return this;
    }

    /** Of jitter and of ties: the same seed, the same choices. Default: a random one. */
    public Builder seed(long seed) {
      this.seed = seed;
      return this;
    }

    /** Every group decides and tells without acting, as by {@link HealthPolicy.Builder#dryRun}. */
    public Builder dryRun(boolean dryRun) {
      this.dryRun = dryRun;
      return this;
    }

    public HealthEngine build() {
      return new HealthEngine(this);
    }
  }
}
