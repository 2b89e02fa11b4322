package dev.timebound.demo.cas;

import dev.timebound.cas.Digest;
import dev.timebound.cas.DigestHasher;
import dev.timebound.demo.cas.StoreClient.Presence;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;

/**
 * Puts a {@link LoadPlan} on a client, from a thread of its own. Arrivals are open: a slow answer
 * never delays the next one. A second thread gives up what is long past its deadline.
 */
final class StoreLoad implements AutoCloseable {
  private static final long LOOK_EVERY_MILLIS = 20;

  private final StoreClient client;
  private final Blobs blobs;
  private final LoadPlan plan;
  private final Account account;
  private final Set<Call<?>> pending = ConcurrentHashMap.newKeySet();
  private final Thread arrivals = thread(this::arrive, "load-arrivals");
  private final Thread reaper = thread(this::reap, "load-reaper");
  private final BlobPool pool;
  private volatile boolean arriving = true;
  private volatile boolean reaping = true;
  private volatile int asked = -1;

  StoreLoad(StoreClient client, Blobs blobs, LoadPlan plan, Account account) {
    this.client = client;
    this.blobs = blobs;
    this.plan = plan;
    this.account = account;
    this.pool = new BlobPool(blobs);
  }

  private static Thread thread(Runnable task, String name) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }

  void start() {
    arrivals.start();
    reaper.start();
  }

  /**
   * From now on, keys that this shard alone holds are asked for every {@value #LOOK_EVERY_MILLIS}
   * ms too; none are where it is negative.
   */
  void askFor(int shard) {
    asked = shard;
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
   * @param ended calls that ended since
   * @param slowestMillis the slowest of these
   * @param pending calls under way
   * @param oldestMillis the age of the oldest of them
   */
  record Moment(long ended, long slowestMillis, int pending, long oldestMillis) {}

  /** No more arrivals; returns when every call was answered or is given up. */
  Figures finish() throws InterruptedException {
    arriving = false;
    arrivals.join();
    while (!pending.isEmpty()) {
      TimeUnit.MILLISECONDS.sleep(LOOK_EVERY_MILLIS);
    }
    close();
    return account.figures();
  }

  @Override
  public void close() throws InterruptedException {
    arriving = false;
    arrivals.join();
    reaping = false;
    reaper.join();
    pending.forEach(Call::giveUp);
  }

  private void arrive() {
    Random random = new Random(plan.seed());
    long due = System.nanoTime();
    while (arriving) {
      due += (long) (-Math.log(1 - random.nextDouble()) * 1e9 / plan.perSecond());
      int kind = random.nextInt(plan.perSecond());
      long choice = random.nextLong();
      waitUntil(due);
      if (kind < plan.readsPerSecond()) {
        new Read(blob(new Random(choice)), due).begin();
      } else if (kind < plan.readsPerSecond() + plan.checksPerSecond()) {
        new Check(choice, due).begin();
      } else {
        new Write(choice, due).begin();
      }
    }
  }

  private Blob blob(Random random) {
    if (random.nextInt(LoadPlan.UNMIRRORED_ONE_IN) == 0) {
      return any(blobs.unmirrored(), random);
    }
    int draw = random.nextInt(LoadPlan.OF);
    int size = Blobs.SMALL;
    int below = LoadPlan.LARGEST_OF;
    if (draw < below) {
      size = 64 * Blobs.MIB;
    } else if (draw < (below += LoadPlan.LARGE_OF)) {
      size = 8 * Blobs.MIB;
    } else if (draw < (below += LoadPlan.MIB_OF)) {
      size = Blobs.MIB;
    } else if (draw < below + LoadPlan.MIDDLE_OF) {
      size = 256 * Blobs.KIB;
    }
    return any(size == Blobs.SMALL ? pool.small() : pool.ofSize(size), random);
  }

  private static <T> T any(List<T> all, Random random) {
    return all.get(random.nextInt(all.size()));
  }

  private void reap() {
    Random random = new Random(plan.seed());
    while (reaping) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(LOOK_EVERY_MILLIS));
      pending.forEach(
          call -> {
            if (call.age() > call.time().plus(LoadPlan.GRACE).toNanos()) {
              call.giveUp();
            }
          });
      int shard = asked;
      if (shard >= 0 && arriving) {
        List<Blob> own = blobs.unmirrored().stream().filter(blob -> blob.home() == shard).toList();
        new Read(any(own, random), System.nanoTime()).begin();
      }
    }
  }

  private static void waitUntil(long due) {
    long left;
    while ((left = due - System.nanoTime()) > 0) {
      LockSupport.parkNanos(left);
    }
  }

  /** A call under way. */
  private abstract class Call<T> extends BaseSubscriber<T> {
    final boolean measured = account.isMeasuring();
    final long due;
    private final AtomicBoolean ended = new AtomicBoolean();

    Call(long due) {
      this.due = due;
    }

    /** What it has, from its start. */
    Duration time() {
      return plan.deadline();
    }

    abstract Flux<T> what();

    abstract void completed(long now);

    abstract void failed(Throwable error, long now);

    @Nullable Blob blob() {
      return null;
    }

    void begin() {
      account.begun(measured);
      pending.add(this);
      Flux.defer(this::what).subscribe(this);
    }

    long age() {
      return System.nanoTime() - due;
    }

    @Override
    protected void hookOnComplete() {
      if (end()) {
        completed(System.nanoTime());
      }
    }

    @Override
    protected void hookOnError(Throwable error) {
      if (end()) {
        failed(error, System.nanoTime());
      }
    }

    /** It is long past its deadline and has not been answered. */
    void giveUp() {
      if (end()) {
        account.unanswered(measured, blob(), time(), due, System.nanoTime());
        cancel();
      }
    }

    private boolean end() {
      return ended.compareAndSet(false, true) && pending.remove(this);
    }
  }

  private final class Read extends Call<ByteBuffer> {
    private final Blob blob;
    private final DigestHasher hasher;
    private long firstByte;

    Read(Blob blob, long due) {
      super(due);
      this.blob = blob;
      this.hasher = DigestHasher.of(blob.digest().function());
    }

    @Override
    Blob blob() {
      return blob;
    }

    @Override
    Duration time() {
      return plan.time(blob);
    }

    @Override
    Flux<ByteBuffer> what() {
      return client.read(blob.digest(), time());
    }

    @Override
    protected void hookOnNext(ByteBuffer chunk) {
      if (firstByte == 0) {
        firstByte = System.nanoTime();
      }
      // the demo's own check, whatever the client checks
      hasher.update(chunk);
    }

    @Override
    void completed(long now) {
      boolean right = hasher.digest().equals(blob.digest());
      account.readEnded(blob, measured, time(), due, firstByte, now, right);
    }

    @Override
    void failed(Throwable error, long now) {
      account.readFailed(blob, measured, time(), due, now, error);
    }
  }

  private final class Check extends Call<Map<Digest, Presence>> {
    private final Set<Digest> there = new HashSet<>();
    private final Set<Digest> nowhere = new HashSet<>();
    private @Nullable Map<Digest, Presence> answer;

    Check(long choice, long due) {
      super(due);
      Random random = new Random(choice);
      while (there.size() + nowhere.size() < LoadPlan.KEYS) {
        if (there.size() < LoadPlan.KEYS / 2) {
          there.add(any(blobs.mirrored(), random).digest());
        } else {
          nowhere.add(Digest.of(Blobs.content(random.nextLong(), Blobs.KIB)));
        }
      }
    }

    @Override
    Flux<Map<Digest, Presence>> what() {
      Set<Digest> all = new HashSet<>(there);
      all.addAll(nowhere);
      return client.check(all, time()).flux();
    }

    @Override
    protected void hookOnNext(Map<Digest, Presence> value) {
      answer = value;
    }

    @Override
    void completed(long now) {
      Map<Digest, Presence> all = answer;
      if (all == null || all.size() != there.size() + nowhere.size()) {
        failed(new IllegalStateException("not every key has an answer"), now);
        return;
      }
      account.checkEnded(
          measured,
          due,
          now,
          count(all, there, Presence.MISSING),
          count(all, nowhere, Presence.PRESENT),
          count(all, all.keySet(), Presence.UNKNOWN));
    }

    private int count(Map<Digest, Presence> all, Set<Digest> of, Presence said) {
      return (int) of.stream().filter(digest -> all.get(digest) == said).count();
    }

    @Override
    void failed(Throwable error, long now) {
      account.failed(measured, due, now, error);
    }
  }

  private final class Write extends Call<Void> {
    private final byte[] content;
    private final Digest digest;

    Write(long choice, long due) {
      super(due);
      Random random = new Random(choice);
      // no two runs write the same: what is there already is no work
      content =
          Blobs.content(choice ^ System.nanoTime(), Blobs.KIB + random.nextInt(63 * Blobs.KIB));
      digest = Digest.of(content);
    }

    @Override
    Flux<Void> what() {
      return client.write(digest, content, time()).flux();
    }

    @Override
    void completed(long now) {
      account.writeEnded(measured, due, now);
    }

    @Override
    void failed(Throwable error, long now) {
      account.failed(measured, due, now, error);
    }
  }
}
