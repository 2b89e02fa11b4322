package dev.timebound.fetch.segments;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.scheduler.Schedulers;

/** A disk that fails, or waits, where a test tells it to, and tells what was asked of it. */
class FaultyDisk extends Disk {
  /** Bytes that still fit; what goes beyond is half written, and fails. */
  volatile long room = Long.MAX_VALUE;

  volatile boolean truncates = true;
  volatile boolean forces = true;
  volatile boolean creates = true;

  /** One permit for each load; without end unless a test takes them. */
  final Semaphore loads = new Semaphore(1 << 20);

  /** None is taken; without one nothing is mapped, nor is a partition opened. */
  final Semaphore maps = new Semaphore(1);

  final AtomicInteger forced = new AtomicInteger();
  final AtomicInteger loaded = new AtomicInteger();
  final Set<String> threads = ConcurrentHashMap.newKeySet();

  private void called() {
    threads.add(Thread.currentThread().getName());
    if (Schedulers.isInNonBlockingThread()) {
      throw new IllegalStateException("the disk is waited for on " + Thread.currentThread());
    }
  }

  @Override
  FileChannel create(Path file) throws IOException {
    called();
    if (!creates) {
      throw new IOException("Permission denied");
    }
    return super.create(file);
  }

  @Override
  FileChannel open(Path file) throws IOException {
    called();
    return super.open(file);
  }

  @Override
  void write(FileChannel channel, ByteBuffer bytes, long position) throws IOException {
    called();
    if (bytes.remaining() > room) {
      int half = (int) Math.max(0, room);
      super.write(channel, bytes.duplicate().limit(bytes.position() + half), position);
      room = 0;
      throw new IOException("No space left on device");
    }
    room -= bytes.remaining();
    super.write(channel, bytes, position);
  }

  @Override
  void truncate(FileChannel channel, long size) throws IOException {
    called();
    if (!truncates) {
      throw new IOException("Input/output error");
    }
    super.truncate(channel, size);
  }

  @Override
  void force(FileChannel channel) throws IOException {
    called();
    forced.incrementAndGet();
    if (!forces) {
      throw new IOException("Input/output error");
    }
    super.force(channel);
  }

  @Override
  MappedByteBuffer map(Path file) throws IOException {
    called();
    maps.acquireUninterruptibly();
    maps.release();
    return super.map(file);
  }

  @Override
  void load(Path file, MappedByteBuffer mapping, int position, int length) throws IOException {
    called();
    try {
      loads.acquire();
    } catch (InterruptedException e) {
      throw new ClosedByInterruptException();
    }
    loaded.incrementAndGet();
    super.load(file, mapping, position, length);
  }

  @Override
  void delete(Path file) throws IOException {
    called();
    super.delete(file);
  }
}
