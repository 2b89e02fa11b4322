package dev.timebound.health;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** The one class that knows Micrometer: without it on the class path this is never loaded. */
final class MicrometerMeters extends Meters {
  private static final String OPEN = "timebound.health.open";
  private static final String KEYS = "timebound.health.keys";

  private final MeterRegistry registry;
  private final List<Meter> gauges = new CopyOnWriteArrayList<>();

  /** What each group's meters are tagged with: its name, or more where another engine has that. */
  private final Map<String, String> tags = new ConcurrentHashMap<>();

  MicrometerMeters(MeterRegistry registry) {
    this.registry = registry;
  }

  @Override
  void grouped(HealthGroup<?> group) {
    // A second meter under the same tags would be the first one: it would not tell of this group,
    // and go with the other.
    synchronized (registry) {
      register(group, free(group.name()));
    }
  }

  private String free(String name) {
    String tag = name;
    for (int i = 2; isTaken(tag); i++) {
      tag = name + "#" + i;
    }
    return tag;
  }

  private boolean isTaken(String tag) {
    return registry.find(OPEN).tag("group", tag).meter() != null
        || registry.find(KEYS).tag("group", tag).meter() != null;
  }

  @Override
  void keyed(KeyedHealth<?> group) {
    synchronized (registry) {
      String tag = free(group.name());
      tags.put(group.name(), tag);
      gauges.add(
          Gauge.builder(KEYS, group, KeyedHealth::size)
              .description("Keys with a penalty")
              .tags("group", tag)
              .register(registry));
    }
  }

  private void register(HealthGroup<?> group, String tag) {
    this.tags.put(group.name(), tag);
    Tags tags = Tags.of("group", tag);
    for (MemberStatus status : MemberStatus.values()) {
      gauges.add(
          Gauge.builder("timebound.health.members", group, g -> count(g, status))
              .description("Members by status")
              .tags(tags.and("status", tag(status)))
              .register(registry));
    }
    gauges.add(
        Gauge.builder(OPEN, group, HealthGroup::openClaims)
            .description("Open claims")
            .tags(tags)
            .register(registry));
  }

  @Override
  void ungrouped(String group) {
    gauges.removeIf(
        gauge -> {
          boolean ofGroup = tagOf(group).equals(gauge.getId().getTag("group"));
          if (ofGroup) {
            registry.remove(gauge);
          }
          return ofGroup;
        });
  }

  private static double count(HealthGroup<?> group, MemberStatus status) {
    return group.members().stream().filter(m -> m.status() == status).count();
  }

  @Override
  void changed(HealthEvent e) {
    registry
        .counter(
            "timebound.health.transitions",
            Tags.of(
                "group",
                tagOf(e.group()),
                "from",
                tag(e.from()),
                "to",
                tag(e.to()),
                "reason",
                tag(e.reason())))
        .increment();
  }

  @Override
  void decided(Decision d) {
    registry
        .counter(
            "timebound.health.decisions",
            Tags.of(
                "group", tagOf(d.group()), "action", tag(d.action()), "outcome", tag(d.outcome())))
        .increment();
  }

  @Override
  void penalised(String group) {
    registry.counter("timebound.health.penalties", Tags.of("group", tagOf(group))).increment();
  }

  @Override
  void probed(String group, ProbeOutcome outcome) {
    registry
        .counter("timebound.health.probes", Tags.of("group", tagOf(group), "outcome", tag(outcome)))
        .increment();
  }

  /** Gauges hold on to nothing, but would read a closed engine for ever. */
  @Override
  void close() {
    gauges.forEach(registry::remove);
    gauges.clear();
  }

  private String tagOf(String group) {
    return tags.getOrDefault(group, group);
  }

  private static String tag(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT);
  }
}
