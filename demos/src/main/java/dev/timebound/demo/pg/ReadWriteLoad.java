package dev.timebound.demo.pg;

import java.time.Duration;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Mono;

/**
 * Puts a {@link LoadPlan} on a client, from a thread of its own. Arrivals are open: a slow answer
 * never delays the next one.
 */
final class ReadWriteLoad implements AutoCloseable {
  private final ReadWriteClient client;
  private final LoadPlan plan;
  private final Account account;
  private final Set<Call<?>> pending = ConcurrentHashMap.newKeySet();
  private final Thread arrivals = new Thread(this::arrive, "load-arrivals");
  private final ScheduledExecutorService leaving =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "load-leaving");
            thread.setDaemon(true);
            return thread;
          });
  private volatile boolean arriving = true;
  private long pulse;

  ReadWriteLoad(ReadWriteClient client, LoadPlan plan, Account account) {
    this.client = client;
    this.plan = plan;
    this.account = account;
    arrivals.setDaemon(true);
  }

  void start() {
    arrivals.start();
  }

  /** How it stands at this moment; "since" in it is since this was last asked. */
  Moment moment() {
    Histogram recent = account.recent();
    return new Moment(
        recent.getTotalCount(),
        recent.getTotalCount() == 0 ? 0 : recent.getMaxValue() / 1_000,
        pending.size(),
        TimeUnit.NANOSECONDS.toMillis(pending.stream().mapToLong(Call::age).max().orElse(0)));
  }

  /**
   * @param answered reads answered since
   * @param slowestMillis the slowest of these
   * @param pending reads and writes under way
   * @param oldestMillis the age of the oldest of them
   */
  record Moment(long answered, long slowestMillis, int pending, long oldestMillis) {}

  /** No more arrivals; what has not ended after {@code patience} counts as an error. */
  Figures finish(Duration patience) throws InterruptedException {
    arriving = false;
    arrivals.join();
    long until = System.nanoTime() + patience.toNanos();
    while (System.nanoTime() < until && !pending.isEmpty()) {
      Thread.sleep(20);
    }
    close();
    return account.figures();
  }

  /** Ends all that is under way. */
  @Override
  public void close() throws InterruptedException {
    arriving = false;
    arrivals.join();
    leaving.shutdownNow();
    pending.forEach(Call::giveUp);
  }

  private void arrive() {
    Random random = new Random(plan.seed());
    int perSecond = plan.readsPerSecond() + plan.writesPerSecond();
    long due = System.nanoTime();
    while (arriving) {
      due += (long) (-Math.log(1 - random.nextDouble()) * 1e9 / perSecond);
      boolean read = random.nextInt(perSecond) < plan.readsPerSecond();
      int id = 1 + random.nextInt(Table.ROWS);
      int kind = random.nextInt(LoadPlan.LEAVES_ONE_IN * LoadPlan.SLOW_ONE_IN);
      waitUntil(due);
      if (read) {
        read(id, kind, due);
      } else {
        write(id, due);
      }
    }
  }

  private void read(int id, int kind, long due) {
    boolean leaves = kind < LoadPlan.SLOW_ONE_IN;
    boolean slow = kind % LoadPlan.SLOW_ONE_IN == 0;
    int busy = leaves ? LoadPlan.LEFT_MILLIS : slow ? LoadPlan.SLOW_MILLIS : 0;
    boolean measured = account.isMeasuring();
    account.readBegun(measured);
    Call<Answer> call =
        new Call<>(due) {
          @Override
          void answered(Answer answer, long now) {
            account.readAnswered(measured, due, now, answer);
          }

          @Override
          void failed(Throwable error, long now) {
            account.readFailed(measured, due, now, error);
          }

          @Override
          void left() {
            account.readLeft(measured);
          }
        };
    call.begin(Mono.defer(() -> client.read(new Ask(id, busy))));
    if (leaves) {
      leaving.schedule(call::leave, LoadPlan.LEAVES_AFTER_MILLIS, TimeUnit.MILLISECONDS);
    }
  }

  private void write(int id, long due) {
    boolean measured = account.isMeasuring();
    long number = ++pulse;
    Call<Boolean> call =
        new Call<>(due) {
          @Override
          void answered(Boolean done, long now) {
            account.written(measured, due, now, number);
          }

          @Override
          void failed(Throwable error, long now) {
            account.writeFailed(measured, due, now, error);
          }
        };
    call.begin(Mono.defer(() -> client.write(id, number)).thenReturn(true));
  }

  /** A read or a write under way. */
  private abstract class Call<T> extends BaseSubscriber<T> {
    private final long due;
    private final AtomicBoolean ended = new AtomicBoolean();

    Call(long due) {
      this.due = due;
    }

    abstract void answered(T value, long now);

    abstract void failed(Throwable error, long now);

    void left() {}

    void begin(Mono<T> what) {
      pending.add(this);
      what.subscribe(this);
    }

    long age() {
      return System.nanoTime() - due;
    }

    @Override
    protected void hookOnNext(T value) {
      if (end()) {
        answered(value, System.nanoTime());
      }
    }

    @Override
    protected void hookOnComplete() {
      if (end()) {
        failed(new IllegalStateException("no value"), System.nanoTime());
      }
    }

    @Override
    protected void hookOnError(Throwable error) {
      if (end()) {
        failed(error, System.nanoTime());
      }
    }

    /** Its caller has had enough of waiting. */
    void leave() {
      if (end()) {
        left();
        cancel();
      }
    }

    /** The last wait is over and it has not ended: an error, as slow as it is by now. */
    void giveUp() {
      if (end()) {
        failed(
            new TimeoutException("no answer, " + age() / 1_000_000 + " ms after it began"),
            System.nanoTime());
        cancel();
      }
    }

    private boolean end() {
      return ended.compareAndSet(false, true) && pending.remove(this);
    }
  }

  private static void waitUntil(long due) {
    long left;
    while ((left = due - System.nanoTime()) > 0) {
      LockSupport.parkNanos(left);
    }
  }
}
