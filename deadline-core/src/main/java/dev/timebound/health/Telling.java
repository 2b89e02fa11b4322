package dev.timebound.health;

import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;
import reactor.core.publisher.BufferOverflowStrategy;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;

/** Tells the world of a change: listeners, meters, the log. Off the callers' threads. */
final class Telling {
  private static final Logger log = LoggerFactory.getLogger(HealthEngine.class);
  private static final int BUFFER = 256;

  private final Sinks.Many<HealthEvent> sink = Sinks.many().multicast().directBestEffort();
  private final Flux<HealthEvent> events;
  private final Serial<Runnable> emissions = new Serial<>(Runnable::run);
  private final Meters meters;
  private final Decisions decisions = new Decisions();

  Telling(Scheduler scheduler, Meters meters) {
    this.meters = meters;
    // each listener has its own buffer and worker: a slow one loses its oldest events, no one
    // else's
    this.events =
        sink.asFlux()
            .onBackpressureBuffer(BUFFER, dropped -> {}, BufferOverflowStrategy.DROP_OLDEST)
            .publishOn(scheduler, false, 1);
  }

  Flux<HealthEvent> events() {
    return events;
  }

  List<Decision> decisions() {
    return decisions.last();
  }

  /** At once: who has reported can read what it led to. */
  void decided(Decision d) {
    decisions.add(d);
  }

  void changed(HealthEvent e, Decision d) {
    // groups tell from workers of their own, a sink wants one at a time; what runs in it only
    // queues
    emissions.offer(() -> sink.tryEmitNext(e));
    boolean inService =
        e.from() != MemberStatus.QUARANTINED
            && e.to() != MemberStatus.QUARANTINED
            && e.reason() != HealthReason.REPLACED;
    log.atLevel(inService ? Level.DEBUG : Level.INFO)
        .log(
            "health {}/{}: {} -> {}{}, {} (group: {})",
            e.group(),
            e.member(),
            e.from(),
            e.to(),
            e.dryRun() ? " in a dry run" : "",
            e.figure(),
            d.groupFigure());
    if (!e.dryRun()) {
      meters.changed(e);
    }
    meters.decided(d);
  }

  /** Whether anyone hears of penalties and probes. */
  boolean counts() {
    return meters != Meters.NONE;
  }

  void penalised(String group) {
    meters.penalised(group);
  }

  void probed(String group, ProbeOutcome outcome) {
    meters.probed(group, outcome);
  }

  void grouped(HealthGroup<?> group) {
    meters.grouped(group);
  }

  void keyed(KeyedHealth<?> group) {
    meters.keyed(group);
  }

  void ungrouped(String group) {
    meters.ungrouped(group);
  }

  void close() {
    emissions.offer(sink::tryEmitComplete);
    meters.close();
  }
}
