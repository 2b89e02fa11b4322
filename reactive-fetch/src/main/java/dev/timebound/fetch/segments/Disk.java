package dev.timebound.fetch.segments;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** What the store asks of a disk, where a test may have it fail or stall. Each call blocks. */
class Disk {
  static final Disk REAL = new Disk();

  /** An empty file, open for appends. */
  FileChannel create(Path file) throws IOException {
    return FileChannel.open(
        file,
        StandardOpenOption.CREATE,
        StandardOpenOption.TRUNCATE_EXISTING,
        StandardOpenOption.READ,
        StandardOpenOption.WRITE);
  }

  /** A file that is there, open for appends. */
  FileChannel open(Path file) throws IOException {
    return FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
  }

  /** Makes what was done to a directory's entries last, where the system can. */
  void forceDirectory(Path directory) throws IOException {
    try (FileChannel channel = FileChannel.open(directory, StandardOpenOption.READ)) {
      channel.force(true);
    } catch (AccessDeniedException e) {
      // Windows opens no directory
    }
  }

  /** Writes all of the buffer. */
  void write(FileChannel channel, ByteBuffer bytes, long position) throws IOException {
    long at = position;
    while (bytes.hasRemaining()) {
      at += channel.write(bytes, at);
    }
  }

  void truncate(FileChannel channel, long size) throws IOException {
    channel.truncate(size);
  }

  void force(FileChannel channel) throws IOException {
    channel.force(false);
  }

  /** Maps a whole file for reads. The file is closed; the mapping stays. */
  MappedByteBuffer map(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      long size = Math.min(channel.size(), Integer.MAX_VALUE);
      try {
        return channel.map(FileChannel.MapMode.READ_ONLY, 0, size);
      } catch (IOException e) {
        if (channel.size() >= size) {
          throw e;
        }
        // it was sealed, and cut to its length, in between
        return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
      }
    }
  }

  /** Brings a part of a mapping into memory. */
  void load(Path file, MappedByteBuffer mapping, int position, int length) throws IOException {
    mapping.slice(position, length).load();
  }

  void delete(Path file) throws IOException {
    Files.deleteIfExists(file);
  }
}
