package dev.timebound.test;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** Unpacks a tar archive of files, directories and symbolic links; anything else is refused. */
final class Tar {
  private static final int BLOCK = 512;

  private Tar() {}

  /**
   * Unpacks all of {@code in} under {@code target}; what may be executed by its owner may be
   * executed by all, and all may be read by all.
   *
   * @throws IOException where the archive is cut short, names a path outside of {@code target} or
   *     holds an entry of another kind
   */
  static void unpack(InputStream in, Path target) throws IOException {
    byte[] header = new byte[BLOCK];
    while (readWhole(in, header) && header[0] != 0) {
      String name = text(header, 0, 100);
      String prefix = text(header, 345, 155);
      Path path = inside(target, prefix.isEmpty() ? name : prefix + "/" + name);
      long size = octal(header, 124, 12);
      boolean executable = (octal(header, 100, 8) & 0100) != 0;
      char kind = (char) header[156];
      switch (kind) {
        case '0', 0 -> {
          Files.createDirectories(parent(path));
          try (OutputStream out = Files.newOutputStream(path)) {
            copy(in, out, size);
          }
          permit(path, executable ? "rwxr-xr-x" : "rw-r--r--");
        }
        case '5' -> {
          Files.createDirectories(path);
          permit(path, "rwxr-xr-x");
        }
        case '2' -> {
          Files.createDirectories(parent(path));
          Files.createSymbolicLink(path, Path.of(text(header, 157, 100)));
        }
        default -> throw new IOException("entry " + name + " of kind " + kind + " in the archive");
      }
    }
  }

  private static Path inside(Path target, String name) throws IOException {
    Path path = target.resolve(name).normalize();
    if (!path.startsWith(target.normalize())) {
      throw new IOException("entry " + name + " leads out of the archive");
    }
    return path;
  }

  private static Path parent(Path path) throws IOException {
    Path parent = path.getParent();
    if (parent == null) {
      throw new IOException("entry without a directory: " + path);
    }
    return parent;
  }

  private static void permit(Path path, String permissions) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions));
  }

  private static void copy(InputStream in, OutputStream out, long size) throws IOException {
    byte[] buffer = new byte[1 << 16];
    long left = size;
    while (left > 0) {
      int read = in.read(buffer, 0, (int) Math.min(left, buffer.length));
      if (read < 0) {
        throw new EOFException("the archive ends in the middle of a file");
      }
      out.write(buffer, 0, read);
      left -= read;
    }
    in.skipNBytes((BLOCK - size % BLOCK) % BLOCK);
  }

  private static boolean readWhole(InputStream in, byte[] block) throws IOException {
    int read = in.readNBytes(block, 0, block.length);
    if (read != 0 && read != block.length) {
      throw new EOFException("the archive ends in the middle of a header");
    }
    return read == block.length;
  }

  private static String text(byte[] header, int from, int length) {
    int end = from;
    while (end < from + length && header[end] != 0) {
      end++;
    }
    return new String(header, from, end - from, StandardCharsets.UTF_8);
  }

  private static long octal(byte[] header, int from, int length) {
    String digits = text(header, from, length).strip();
    return digits.isEmpty() ? 0 : Long.parseLong(digits, 8);
  }
}
