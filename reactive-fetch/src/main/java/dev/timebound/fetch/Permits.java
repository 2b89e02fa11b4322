package dev.timebound.fetch;

import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * So many may hold a permit at once, so many of them for one partition; the others wait in the
 * order in which they came, at most so many. Thread-safe. A permit is the ticket's, not a value in
 * a pipeline that a race could drop: who closes the ticket gives it back.
 */
final class Permits {
  private final String name;
  private final int most;
  private final int mostOfOne;
  private final int mostWaiting;

  /** Tells the tickets, so that a long queue of them is not a deep stack. */
  private final Serial telling = new Serial();

  // guarded by this
  private final Set<Ticket> waiting = new LinkedHashSet<>();
  private final Map<TopicPartition, Integer> heldFor = new HashMap<>();
  private int held;

  Permits(String name, int most, int mostOfOne, int mostWaiting) {
    this.name = name;
    this.most = most;
    this.mostOfOne = mostOfOne;
    this.mostWaiting = mostWaiting;
  }

  Ticket ticket(TopicPartition of) {
    return new Ticket(of);
  }

  synchronized int held() {
    return held;
  }

  synchronized int waiting() {
    return waiting.size();
  }

  private enum State {
    NEW,
    WAITING,
    HELD,
    CLOSED
  }

  /** One read's claim to a permit. */
  final class Ticket implements AutoCloseable {
    private final Sinks.Empty<Void> granted = Sinks.empty();

    /** Guarded by the permits. */
    private State state = State.NEW;

    private final TopicPartition of;

    private Ticket(TopicPartition of) {
      this.of = of;
    }

    /**
     * Completes when the permit is held; once.
     *
     * @return fails with {@link RejectedExecutionException} where too many wait
     */
    Mono<Void> acquire() {
      return Mono.defer(
          () -> {
            synchronized (Permits.this) {
              if (state != State.NEW) {
                return granted.asMono();
              }
              if (held < most && mayHold(of)) {
                hold(this);
                return Mono.empty();
              }
              if (waiting.size() >= mostWaiting) {
                state = State.CLOSED;
                return Mono.error(
                    new RejectedExecutionException(
                        name
                            + ": "
                            + mostWaiting
                            + " calls wait for a permit, as many as maxWaiting allows"));
              }
              state = State.WAITING;
              waiting.add(this);
              return granted.asMono();
            }
          });
    }

    /** Gives the permit back, or leaves the queue; any number of times. */
    @Override
    public void close() {
      Ticket next = null;
      synchronized (Permits.this) {
        State before = state;
        state = State.CLOSED;
        if (before == State.WAITING) {
          waiting.remove(this);
        } else if (before == State.HELD) {
          next = passOn(of);
        }
      }
      if (next != null) {
        telling.run(next.granted::tryEmitEmpty);
      }
    }
  }

  private boolean mayHold(TopicPartition of) {
    return heldFor.getOrDefault(of, 0) < mostOfOne;
  }

  private void hold(Ticket ticket) {
    held++;
    ticket.state = State.HELD;
    heldFor.merge(ticket.of, 1, Integer::sum);
  }

  /** The permit goes to the one who has waited longest of those that may hold it. */
  private @Nullable Ticket passOn(TopicPartition from) {
    held--;
    heldFor.computeIfPresent(from, (of, count) -> count == 1 ? null : count - 1);
    for (Iterator<Ticket> all = waiting.iterator(); all.hasNext(); ) {
      Ticket next = all.next();
      if (mayHold(next.of)) {
        all.remove();
        hold(next);
        return next;
      }
    }
    return null;
  }
}
