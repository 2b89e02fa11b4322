package dev.timebound.test;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.socket.DuplexChannel;
import java.util.ArrayDeque;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * One direction of a connection: what was read from one socket and is under way to the other. All
 * of it runs on the proxy's event loop.
 *
 * <p>Every chunk has the time at which it is due at the far end, so that any number are under way
 * together: a delay costs latency and no throughput. It reads only while what it holds is below a
 * bound and the far socket takes more, so that a stall fills TCP's windows and not this heap. The
 * end of the stream (FIN or reset) is under way in the same queue as the bytes before it.
 */
final class Pipe {
  /** How the source ended. */
  enum End {
    FIN,
    RESET
  }

  /**
   * Held back in one direction where nothing delays it: what one read may bring, and little more.
   */
  static final int BACKLOG = 128 << 10;

  /**
   * Under way in one direction at most, where there is a delay: a wire of 1 GB/s that is 64 ms
   * long.
   */
  static final int WIRE = 64 << 20;

  // A limit of n bytes a second passes on n/100 at a time: smooth enough, and no timer storm.
  private static final long SLICES_PER_SECOND = 100;

  private record Chunk(@Nullable ByteBuf bytes, @Nullable End end, long dueNanos) {}

  private final EventLoop loop;
  private final Impairments impairments;
  private final LongConsumer moved;
  private final Runnable ended;
  private final ArrayDeque<Chunk> underWay = new ArrayDeque<>();
  private final Runnable onTimer = this::onTimer;

  private @Nullable ChannelHandlerContext source;
  private @Nullable ChannelHandlerContext target;
  private @Nullable Future<?> timer;
  private long timerAt;
  private long held;
  private long credit;
  private long creditAt;
  private boolean frozen;
  private boolean unflushed;
  private boolean sourceEnded;
  private boolean delivered;
  private boolean finishing;
  private boolean closed;

  /**
   * @param moved told how many bytes were handed to the far socket
   * @param ended run once the end of the stream was handed to the far socket
   */
  Pipe(EventLoop loop, Impairments impairments, LongConsumer moved, Runnable ended) {
    this.loop = loop;
    this.impairments = impairments;
    this.moved = moved;
    this.ended = ended;
  }

  void connect(ChannelHandlerContext source, ChannelHandlerContext target) {
    this.source = source;
    this.target = target;
    pump();
  }

  /** A chunk has come in; the pipe owns it now. */
  void received(ByteBuf bytes) {
    ChannelHandlerContext to = target;
    if (closed || delivered || !bytes.isReadable()) {
      bytes.release();
    } else if (to != null
        && underWay.isEmpty()
        && !frozen
        && impairments.delayNanos == 0
        && impairments.bytesPerSecond == 0) {
      // The way without faults: straight on, whatever the far socket holds; reading stops where it
      // holds too much.
      write(to, bytes);
      if (!to.channel().isWritable()) {
        readWhileThereIsRoom();
      }
    } else {
      held += bytes.readableBytes();
      underWay.add(new Chunk(bytes, null, System.nanoTime() + impairments.delayNanos));
      readWhileThereIsRoom();
    }
  }

  /**
   * The source ended. A reset after a FIN is passed on too: the far side must not wait on one that
   * is gone.
   */
  void receivedEnd(End end) {
    if (closed || (sourceEnded && end == End.FIN)) {
      return;
    }
    sourceEnded = true;
    underWay.add(new Chunk(null, end, System.nanoTime() + impairments.delayNanos));
    pump();
  }

  void freeze(boolean freeze) {
    frozen = freeze;
    pump();
  }

  /**
   * Passes on what is due and can be, and reads on where there is room. Called whenever something
   * changed.
   */
  void pump() {
    if (closed) {
      return;
    }
    passOn();
    if (unflushed && target != null) {
      unflushed = false;
      target.flush();
    }
    readWhileThereIsRoom();
  }

  /** Drops what is under way and passes on nothing more. The sockets are the owner's to close. */
  void close() {
    closed = true;
    if (timer != null) {
      timer.cancel(false);
    }
    for (Chunk chunk : underWay) {
      if (chunk.bytes != null) {
        chunk.bytes.release();
      }
    }
    underWay.clear();
    held = 0;
  }

  private void passOn() {
    ChannelHandlerContext to = target;
    if (to == null || frozen || finishing) {
      return;
    }
    long now = System.nanoTime();
    Chunk head;
    while (!closed && (head = underWay.peek()) != null) {
      if (head.dueNanos - now > 0) {
        pumpAt(head.dueNanos, now);
        return;
      }
      if (head.end != null) {
        underWay.remove();
        deliver(to, head.end);
        return;
      }
      ByteBuf bytes = head.bytes;
      if (bytes == null || !to.channel().isWritable()) {
        return; // its writability event pumps again
      }
      long allowed = allowed(now);
      if (allowed == 0) {
        pumpAt(now + TimeUnit.SECONDS.toNanos(1) / SLICES_PER_SECOND, now);
        return;
      }
      int size = (int) Math.min(allowed, bytes.readableBytes());
      boolean whole = size == bytes.readableBytes();
      held -= size;
      credit -= size;
      if (whole) {
        underWay.remove();
      }
      write(to, whole ? bytes : bytes.readRetainedSlice(size));
    }
  }

  private void write(ChannelHandlerContext to, ByteBuf bytes) {
    moved.accept(bytes.readableBytes());
    unflushed = true;
    to.write(bytes, to.voidPromise());
  }

  private void deliver(ChannelHandlerContext to, End end) {
    delivered = true;
    unflushed = false;
    if (end == End.RESET) {
      reset(to);
      ended.run();
      return;
    }
    // Shutting a channel's output down fails what it still has to write, as a reset behind it
    // would:
    // first let all of that leave.
    finishing = true;
    to.writeAndFlush(Unpooled.EMPTY_BUFFER)
        .addListener(
            left ->
                ((DuplexChannel) to.channel()).shutdownOutput().addListener(shut -> finished()));
  }

  private void finished() {
    finishing = false;
    ended.run();
    pump();
  }

  /** Closes a socket so that its peer sees a reset. */
  static void reset(ChannelHandlerContext socket) {
    if (socket.channel().isOpen()) {
      socket.channel().config().setOption(ChannelOption.SO_LINGER, 0);
      socket.close();
    }
  }

  private void readWhileThereIsRoom() {
    ChannelHandlerContext from = source;
    ChannelHandlerContext to = target;
    if (from == null || to == null || sourceEnded) {
      return;
    }
    boolean room = !frozen && !closed && held < bound() && to.channel().isWritable();
    if (from.channel().config().isAutoRead() != room) {
      from.channel().config().setAutoRead(room);
    }
  }

  private long bound() {
    if (impairments.delayNanos == 0) {
      return BACKLOG;
    }
    if (impairments.bytesPerSecond == 0) {
      return WIRE;
    }
    double wire =
        (double) impairments.bytesPerSecond * impairments.delayNanos / TimeUnit.SECONDS.toNanos(1);
    return (long) Math.max(BACKLOG, Math.min(WIRE, wire));
  }

  /**
   * How many bytes may leave now. What was not used adds up to one slice only, so that no burst
   * follows a pause.
   */
  private long allowed(long now) {
    long rate = impairments.bytesPerSecond;
    if (rate == 0) {
      return Long.MAX_VALUE;
    }
    if (creditAt == 0 || credit < 0) {
      credit = 0;
      creditAt = now;
    }
    long slice = Math.max(1, rate / SLICES_PER_SECOND);
    double earned = (double) (now - creditAt) * rate / TimeUnit.SECONDS.toNanos(1);
    if (earned >= 1) {
      credit = Math.min(2 * slice, credit + (long) earned);
      creditAt = now;
    }
    return credit;
  }

  private void onTimer() {
    timer = null;
    pump();
  }

  private void pumpAt(long atNanos, long now) {
    if (timer != null) {
      if (timerAt - atNanos <= 0) {
        return;
      }
      timer.cancel(false);
    }
    timerAt = atNanos;
    timer = loop.schedule(onTimer, Math.max(0, atNanos - now), TimeUnit.NANOSECONDS);
  }
}
