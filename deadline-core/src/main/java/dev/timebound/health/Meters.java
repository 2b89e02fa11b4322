package dev.timebound.health;

/** What is counted; nothing, where there is no registry. Its calls must not throw. */
class Meters {
  static final Meters NONE = new Meters();

  void grouped(HealthGroup<?> group) {}

  void keyed(KeyedHealth<?> group) {}

  void ungrouped(String group) {}

  void changed(HealthEvent event) {}

  void decided(Decision decision) {}

  void penalised(String group) {}

  void probed(String group, ProbeOutcome outcome) {}

  void close() {}
}
