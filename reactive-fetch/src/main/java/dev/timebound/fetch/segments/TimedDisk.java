package dev.timebound.fetch.segments;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import reactor.core.scheduler.Scheduler;

/** A disk of which it is told how long the calls took that appends and reads wait for. */
final class TimedDisk extends Disk {
  private final Disk disk;
  private final Scheduler time;
  private final SegmentMeters meters;

  /** A call that may fail of the disk. */
  private interface Call<T> {
    T run() throws IOException;
  }

  TimedDisk(Disk disk, Scheduler time, SegmentMeters meters) {
    this.disk = disk;
    this.time = time;
    this.meters = meters;
  }

  private <T> T timed(String name, Call<T> call) throws IOException {
    long began = time.now(TimeUnit.NANOSECONDS);
    boolean done = false;
    try {
      T value = call.run();
      done = true;
      return value;
    } finally {
      meters.called(name, done, time.now(TimeUnit.NANOSECONDS) - began);
    }
  }

  @Override
  FileChannel create(Path file) throws IOException {
    return disk.create(file);
  }

  @Override
  FileChannel open(Path file) throws IOException {
    return disk.open(file);
  }

  @Override
  void forceDirectory(Path directory) throws IOException {
    disk.forceDirectory(directory);
  }

  @Override
  void write(FileChannel channel, ByteBuffer bytes, long position) throws IOException {
    int length = bytes.remaining();
    timed(
        "write",
        () -> {
          disk.write(channel, bytes, position);
          return true;
        });
    meters.wrote(length);
  }

  @Override
  void truncate(FileChannel channel, long size) throws IOException {
    disk.truncate(channel, size);
  }

  @Override
  void force(FileChannel channel) throws IOException {
    timed(
        "force",
        () -> {
          disk.force(channel);
          return true;
        });
  }

  @Override
  MappedByteBuffer map(Path file) throws IOException {
    return timed("map", () -> disk.map(file));
  }

  @Override
  void load(Path file, MappedByteBuffer mapping, int position, int length) throws IOException {
    timed(
        "load",
        () -> {
          disk.load(file, mapping, position, length);
          return true;
        });
  }

  @Override
  void delete(Path file) throws IOException {
    disk.delete(file);
  }
}
