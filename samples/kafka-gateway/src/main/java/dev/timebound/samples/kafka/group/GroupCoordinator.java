package dev.timebound.samples.kafka.group;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Drives the groups that live here: hands each its events one at a time, keeps its timer, and gives
 * its answers. A group that nobody is in is forgotten; what it committed is kept elsewhere.
 * Thread-safe; nothing blocks.
 */
public final class GroupCoordinator implements Disposable {
  private static final int MOST_GROUPS = 10_000;
  private static final int MOST_MEMBERS = 1_000;

  private final Map<String, Running> groups = new ConcurrentHashMap<>();
  private final Scheduler scheduler;
  private final Duration initialDelay;
  private final Supplier<String> ids;
  private volatile boolean disposed;

  /**
   * @param scheduler whose clock the sessions and rebalances follow
   * @param initialDelay how long an empty group waits for further members, {@code >= 0}
   */
  public GroupCoordinator(Scheduler scheduler, Duration initialDelay) {
    this.scheduler = scheduler;
    this.initialDelay = initialDelay;
    // once and not for each: the source of randomness may block
    String instance = UUID.randomUUID().toString();
    AtomicLong count = new AtomicLong();
    this.ids = () -> instance + "-" + count.incrementAndGet();
  }

  /** Answers when the rebalance ends; a cancel leaves the member's session to run out. */
  public Mono<JoinAnswer> join(String group, JoinRequest request) {
    return reply(
        group,
        (running, reply) -> running.join(request, now(), reply),
        error -> JoinAnswer.refused(error, request.memberId()));
  }

  /** Answers when the group's leader has assigned the partitions. */
  public Mono<SyncAnswer> sync(
      String group, String memberId, int generation, Map<String, byte[]> assignments) {
    return reply(
        group,
        (running, reply) -> running.sync(memberId, generation, assignments, now(), reply),
        SyncAnswer::refused);
  }

  /** A member's sign of life. */
  public Mono<Errors> heartbeat(String group, String memberId, int generation) {
    return ask(group, running -> running.heartbeat(memberId, generation, now()));
  }

  /** Takes a member out at once. */
  public Mono<Errors> leave(String group, String memberId) {
    return ask(group, running -> running.leave(memberId, now()));
  }

  /** Whether a member, or one that only uses the group's offsets, may commit. */
  public Mono<Errors> mayCommit(String group, String memberId, int generation) {
    return ask(group, running -> running.mayCommit(memberId, generation, now()));
  }

  /** Groups with members, or with some about to be. */
  public int size() {
    return groups.size();
  }

  /** Forgets all groups; what waits here gets no answer, its connections are about to end. */
  @Override
  public void dispose() {
    disposed = true;
    groups.values().forEach(Running::stop);
    groups.clear();
  }

  @Override
  public boolean isDisposed() {
    return disposed;
  }

  private long now() {
    return scheduler.now(TimeUnit.NANOSECONDS);
  }

  private Mono<Errors> ask(String group, Function<Group, Errors> question) {
    return Mono.fromSupplier(() -> with(group, question, Errors.COORDINATOR_NOT_AVAILABLE));
  }

  private <T> Mono<T> reply(
      String group, BiConsumer<Group, Consumer<T>> event, Function<Errors, T> refusal) {
    return Mono.create(
        sink -> {
          Consumer<T> reply = sink::success;
          boolean taken =
              with(
                  group,
                  running -> {
                    event.accept(running, reply);
                    return true;
                  },
                  false);
          if (!taken) {
            sink.success(refusal.apply(Errors.COORDINATOR_NOT_AVAILABLE));
          }
          sink.onCancel(() -> abandoned(group, reply));
        });
  }

  private void abandoned(String group, Object reply) {
    Running running = groups.get(group);
    if (running != null) {
      running.run(
          state -> {
            state.abandoned(reply, now());
            return true;
          });
    }
  }

  /** One event of a group, which is begun where it is not there. */
  private <T> T with(String group, Function<Group, T> event, T unavailable) {
    while (!disposed && (groups.containsKey(group) || groups.size() < MOST_GROUPS)) {
      T result = groups.computeIfAbsent(group, Running::new).run(event);
      if (result != null) {
        return result;
      }
    }
    return unavailable;
  }

  /** A group with its lock and its timer. */
  private final class Running {
    private final String name;
    private final Group group;
    private @Nullable Disposable timer;
    private boolean over;

    Running(String name) {
      this.name = name;
      this.group = new Group(ids, MOST_MEMBERS, initialDelay);
    }

    /**
     * @return what the event returned; null where the group was over before it
     */
    <T> @Nullable T run(Function<Group, T> event) {
      T result;
      List<Runnable> answers;
      synchronized (this) {
        if (over) {
          return null;
        }
        result = event.apply(group);
        answers = group.takeAnswers();
        if (group.isUnused()) {
          end();
        } else {
          setTimer();
        }
      }
      answers.forEach(Runnable::run);
      return result;
    }

    private void setTimer() {
      if (timer != null) {
        timer.dispose();
      }
      long wait = group.untilNext(now());
      timer = wait < 0 ? null : scheduler.schedule(this::timeIsUp, wait, TimeUnit.NANOSECONDS);
    }

    private void timeIsUp() {
      run(
          state -> {
            state.expire(now());
            return true;
          });
    }

    synchronized void stop() {
      end();
    }

    private void end() {
      over = true;
      if (timer != null) {
        timer.dispose();
      }
      groups.remove(name, this);
    }
  }
}
