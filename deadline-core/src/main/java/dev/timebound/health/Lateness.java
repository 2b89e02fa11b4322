package dev.timebound.health;

/** Whether the last probe's limit was seen late. Of one member's probes, one at a time. */
final class Lateness {
  volatile boolean seen;
}
