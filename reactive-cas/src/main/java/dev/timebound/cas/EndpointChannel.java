package dev.timebound.cas;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One channel to one endpoint. It knows its calls: those that wait for a connection are failed when
 * the attempt to connect fails, in place of waiting on (CAS-1), and those that run on a connection
 * are left alone when the channel is retired.
 *
 * <p>It counts the streams that they hold, since what gRPC is given beyond the server's limit would
 * wait in it unseen (CAS-2c).
 *
 * <p>It also knows for how long calls have waited in vain, whoever ended them: nothing else tells
 * of a connection that is half open where the callers' own deadlines end all calls. (CAS-2b)
 */
final class EndpointChannel extends Channel {
  /** Headers of one call, added to what it has. */
  static final CallOptions.Key<Metadata> HEADERS =
      CallOptions.Key.createWithDefault("timebound-cas-headers", new Metadata());

  /** Of {@link #open}: out of use, and the last call has ended. */
  private static final int CLOSED = -1;

  /** Whoever has the channel. */
  interface Owner {
    /** Calls have waited in vain for as long as they may. */
    void doubt(EndpointChannel silent);

    /** A stream is free that was not. From any thread, the connection's event loop too. */
    default void freed() {}
  }

  private final ManagedChannel raw;
  private final RawChannel line;

  /** As errors name it: the shard and the endpoint. */
  private final String where;

  private final Set<EndpointCall<?, ?>> waiting = ConcurrentHashMap.newKeySet();

  /** Calls and reservations that have not ended. */
  private final AtomicInteger open = new AtomicInteger();

  /** Streams that calls and reservations hold. */
  private final AtomicInteger streams = new AtomicInteger();

  private volatile boolean used;
  private volatile boolean retired;

  /** Why a call that waits for a connection ends at once. */
  private volatile @Nullable Status given;

  private final Silence silence;
  private final LongSupplier clock;
  private final Owner owner;

  /** Nothing has come in since it was doubted. */
  private volatile boolean quiet;

  /** Doubted, and calls have waited in vain once more since; guarded by the owner's lock. */
  private boolean hopeless;

  /**
   * @param patience how long calls may wait in vain, in nanoseconds
   * @param clock in nanoseconds
   */
  EndpointChannel(RawChannel line, String where, long patience, LongSupplier clock, Owner owner) {
    this.raw = line.channel();
    this.line = line;
    this.where = where;
    this.silence = new Silence(patience);
    this.clock = clock;
    this.owner = owner;
  }

  ManagedChannel raw() {
    return raw;
  }

  String where() {
    return where;
  }

  @Override
  public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
    return new EndpointCall<>(this, method, options);
  }

  @Override
  public String authority() {
    return raw.authority();
  }

  /** Calls started and not ended, and reservations. */
  int openCalls() {
    return Math.max(0, open.get());
  }

  /** Streams in use. */
  int streams() {
    return streams.get();
  }

  /** Whether calls wait in gRPC for a stream. */
  boolean isOverfull() {
    return streams.get() > line.streamLimit().getAsInt();
  }

  // --- reservations

  /**
   * Takes a stream for a call that is about to start, to be let go once it has: a call takes its
   * own. False where none is free, or the channel is out of use.
   */
  boolean reserve() {
    if (retired || !takeStream()) {
      return false;
    }
    if (!begin()) {
      streams.decrementAndGet();
      return false;
    }
    used = true;
    return true;
  }

  void letGo() {
    freeStream();
    end();
  }

  private boolean takeStream() {
    int most = line.streamLimit().getAsInt();
    while (true) {
      int now = streams.get();
      if (now >= most) {
        return false;
      }
      if (streams.compareAndSet(now, now + 1)) {
        return true;
      }
    }
  }

  private boolean begin() {
    return open.getAndUpdate(n -> n == CLOSED ? CLOSED : n + 1) != CLOSED;
  }

  private void end() {
    if (open.decrementAndGet() == 0 && retired) {
      closeIfUnused();
    }
  }

  /**
   * At once and not in order: gRPC leaves a connection on which the server has sent GOAWAY to the
   * server to close (CAS-2d), and a channel that still connects would wait for that.
   */
  private void closeIfUnused() {
    if (open.compareAndSet(0, CLOSED)) {
      raw.shutdownNow();
    }
  }

  /** Whether no call has used it since this was asked last, and none is open. */
  boolean isIdle() {
    boolean idle = !used && open.get() == 0;
    used = false;
    return idle;
  }

  // --- the owner's side

  /**
   * Takes the channel out of use: what it has runs on, and with the last of its calls the channel
   * ends.
   */
  void retire() {
    retired = true;
    closeIfUnused();
  }

  /** The same, and calls that wait for a connection end with this status. */
  void retire(Status why) {
    failWaiting(why);
    retire();
  }

  /** Calls that wait for a connection, now or later, end with this status. */
  void failWaiting(Status why) {
    given = why;
    waiting.forEach(call -> failIfWaiting(call, why));
  }

  /** Ends everything at once. */
  void close() {
    raw.shutdownNow();
  }

  boolean isTerminated() {
    return raw.isTerminated();
  }

  /** It is to be replaced, unless something comes in. Under the owner's lock. */
  void doubted() {
    hopeless = quiet;
    quiet = true;
  }

  /** Whether nothing has come in since it was doubted. */
  boolean isQuiet() {
    return quiet;
  }

  /** Whether it was doubted twice, with nothing come in between. Under the owner's lock. */
  boolean isHopeless() {
    return quiet && hopeless;
  }

  // --- the calls' side

  /** False where the channel has ended. */
  boolean started() {
    streams.incrementAndGet();
    return begin();
  }

  /** The call has no connection yet. */
  void waits(EndpointCall<?, ?> call) {
    waiting.add(call);
    Status why = given;
    if (call.isPlaced()) {
      waiting.remove(call);
    } else if (why != null) {
      failIfWaiting(call, why);
    }
  }

  /** The call has a connection, and waits for what comes on it from then on. */
  void placed(EndpointCall<?, ?> call, long now) {
    waiting.remove(call);
    silence.begins(now);
  }

  /** The call's stream is over, though what came on it may not have been read. */
  void freeStream() {
    streams.decrementAndGet();
    owner.freed();
  }

  /**
   * @param counted what {@link #started} said of it
   */
  void ended(EndpointCall<?, ?> call, boolean counted) {
    waiting.remove(call);
    if (counted) {
      end();
    }
  }

  long now() {
    return clock.getAsLong();
  }

  /** Something has come in, for whichever call. */
  void heard() {
    if (quiet) {
      quiet = false;
    }
    silence.ended();
  }

  /** A call was given up of which nothing had come in since then. */
  void unanswered(long since) {
    if (silence.lasts(since, now())) {
      owner.doubt(this);
    }
  }

  private void failIfWaiting(EndpointCall<?, ?> call, Status why) {
    if (waiting.remove(call)) {
      call.fail(why);
    }
  }
}
