package dev.timebound.fetch.s3;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.TopicPartition;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.scheduler.Scheduler;

/**
 * The appends of one partition that come by this store: one object after the other, each with all
 * that waited when its turn came, up to a size. Another process may append between any two: the
 * name of the next offset is taken by one of them only, and the other takes the next free one.
 */
final class Appender {
  private final Calls calls;
  private final Keys keys;
  private final S3Log log;
  private final TopicPartition partition;
  private final AppendSettings settings;

  private final ArrayDeque<Waiting> queue = new ArrayDeque<>(); // guarded by this
  private boolean busy; // guarded by this
  private long appends; // of the one object that is made at a time

  /** What the last object said, as long as nothing else was seen or feared. */
  private @Nullable Tip tip;

  /** How an appender works, for all partitions. */
  record AppendSettings(
      long writer, long objectBytes, int maxWaiting, Duration timeout, Scheduler scheduler) {}

  /** Where the next object begins, and the latest time up to there. */
  private record Tip(long next, long latest) {}

  /** An append whose turn has not come, or whose object is being written. */
  private static final class Waiting {
    private final List<S3Store.NewBatch> batches;
    private final MonoSink<Long> sink;
    private @Nullable Group group; // guarded by the appender
    private boolean left; // guarded by the appender

    Waiting(List<S3Store.NewBatch> batches, MonoSink<Long> sink) {
      this.batches = batches;
      this.sink = sink;
    }
  }

  /** Those that are written as one object; ended early once none of them is waited for. */
  private static final class Group {
    private final List<Waiting> members;
    private int left;
    private @Nullable Disposable work;

    Group(List<Waiting> members) {
      this.members = members;
      this.left = members.size();
    }
  }

  Appender(Calls calls, Keys keys, S3Log log, TopicPartition partition, AppendSettings settings) {
    this.calls = calls;
    this.keys = keys;
    this.log = log;
    this.partition = partition;
    this.settings = settings;
  }

  Mono<Long> append(List<S3Store.NewBatch> batches) {
    return Mono.create(
        sink -> {
          Waiting append = new Waiting(batches, sink);
          synchronized (this) {
            if (queue.size() >= settings.maxWaiting()) {
              sink.error(
                  new S3StoreException(
                      calls.where(keys.log(partition))
                          + ": "
                          + queue.size()
                          + " appends wait (expected: at most maxWaiting "
                          + settings.maxWaiting()
                          + ")",
                      null));
              return;
            }
            queue.add(append);
          }
          sink.onCancel(() -> left(append));
          next();
        });
  }

  private void left(Waiting append) {
    Disposable end = null;
    synchronized (this) {
      if (append.left) {
        return;
      }
      append.left = true;
      Group group = append.group;
      if (group == null) {
        queue.remove(append);
      } else if (--group.left == 0) {
        end = group.work;
      }
    }
    if (end != null) {
      end.dispose();
    }
  }

  private void next() {
    Group group;
    synchronized (this) {
      if (busy || queue.isEmpty()) {
        return;
      }
      busy = true;
      group = new Group(taken());
      Group all = group;
      group.members.forEach(each -> each.group = all);
    }
    Deadline deadline = Deadline.after(settings.timeout(), settings.scheduler());
    Mono<Long> work =
        Mono.defer(() -> put(group, ++appends))
            .transform(Deadlines.of(deadline, "s3 append"))
            .doOnError(failed -> tip = null)
            .doOnCancel(() -> tip = null)
            .doFinally(any -> over());
    Disposable running =
        work.subscribe(
            base -> tell(group, base),
            error -> group.members.forEach(each -> each.sink.error(error)));
    boolean unwanted;
    synchronized (this) {
      group.work = running;
      unwanted = group.left == 0;
    }
    if (unwanted) {
      running.dispose();
    }
  }

  private List<Waiting> taken() {
    List<Waiting> taken = new ArrayList<>(queue);
    queue.clear();
    return taken;
  }

  /** What finds no room in the object waits for the next one, before all others. */
  private synchronized void giveBack(Group group, int from) {
    List<Waiting> back = group.members.subList(from, group.members.size());
    for (int i = back.size() - 1; i >= 0; i--) {
      Waiting each = back.get(i);
      each.group = null;
      if (!each.left) {
        group.left--;
        queue.addFirst(each);
      }
    }
    back.clear();
  }

  private void over() {
    synchronized (this) {
      busy = false;
    }
    next();
  }

  private static void tell(Group group, long base) {
    long next = base;
    for (Waiting each : group.members) {
      each.sink.success(next);
      next += records(each);
    }
  }

  /** The base offset; empty where nothing was left to write. */
  private Mono<Long> put(Group group, long append) {
    @Nullable Tip known = tip;
    return (known != null ? Mono.just(known) : look()).flatMap(at -> put(group, append, at));
  }

  private Mono<Long> put(Group group, long append, Tip at) {
    @Nullable ByteBuffer object = object(group, at, append);
    if (object == null) {
      return Mono.empty();
    }
    String key = keys.object(partition, at.next());
    ObjectIndex index = ObjectIndex.of(object, at.next(), calls.where(key));
    return calls
        .putNew(key, object)
        .flatMap(made -> made ? Mono.just(true) : mine(at.next(), append))
        .flatMap(own -> own ? Mono.just(written(index)) : again(group, append));
  }

  private Mono<Long> again(Group group, long append) {
    tip = null;
    return Mono.defer(() -> put(group, append));
  }

  private long written(ObjectIndex index) {
    tip = new Tip(index.end(), index.latest);
    log.indexed(index);
    return index.base;
  }

  /**
   * Whether what took the offset is this very append: the SDK asks again where the answer was lost.
   */
  private Mono<Boolean> mine(long base, long append) {
    return log.index(base)
        .map(found -> found.writer == settings.writer() && found.append == append)
        .onErrorResume(Calls::isMissing, gone -> Mono.just(false));
  }

  private Mono<Tip> look() {
    return log.bounds()
        .flatMap(
            bounds ->
                bounds.newest() < 0
                    ? Mono.just(new Tip(0, -1))
                    : log.index(bounds.newest()).map(last -> new Tip(last.end(), last.latest)));
  }

  /**
   * As many of the group as have room, one at least; null where none is left. One whose bytes
   * cannot be had fails alone.
   */
  private @Nullable ByteBuffer object(Group group, Tip at, long append) {
    List<ObjectIndex.Part> parts = new ArrayList<>();
    long next = at.next();
    long bytes = 0;
    for (int i = 0; i < group.members.size(); i++) {
      Waiting each = group.members.get(i);
      List<ObjectIndex.Part> more;
      try {
        more = parts(each, next);
      } catch (RuntimeException e) {
        group.members.remove(i--);
        out(group, each);
        each.sink.error(e);
        continue;
      }
      long size = more.stream().mapToLong(part -> part.bytes().remaining()).sum();
      if (!parts.isEmpty() && bytes + size > settings.objectBytes()) {
        giveBack(group, i);
        break;
      }
      bytes += size;
      parts.addAll(more);
      next += records(each);
    }
    return parts.isEmpty()
        ? null
        : ObjectIndex.object(at.next(), at.latest(), settings.writer(), append, parts);
  }

  private synchronized void out(Group group, Waiting failed) {
    if (!failed.left) {
      failed.left = true;
      group.left--;
    }
  }

  private static List<ObjectIndex.Part> parts(Waiting append, long base) {
    List<ObjectIndex.Part> parts = new ArrayList<>(append.batches.size());
    long next = base;
    for (S3Store.NewBatch batch : append.batches) {
      ByteBuffer bytes = batch.bytes().apply(next).slice();
      if (!bytes.hasRemaining()) {
        throw S3Store.refused("bytes", "none", "one at least");
      }
      parts.add(new ObjectIndex.Part(bytes, batch.records(), batch.maxTimestamp()));
      next += batch.records();
    }
    return parts;
  }

  private static long records(Waiting append) {
    return append.batches.stream().mapToLong(S3Store.NewBatch::records).sum();
  }
}
