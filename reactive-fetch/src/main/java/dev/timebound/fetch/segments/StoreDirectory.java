package dev.timebound.fetch.segments;

import dev.timebound.fetch.TopicPartition;
import java.io.IOException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A store's directory, which one process has open at a time:
 *
 * <pre>
 * timebound-segments            what it is: "version 1"
 * lock                          locked by the process that has it open
 * topics/orders/0/              a directory for each partition; other characters of a topic's name
 *   00000000000000000000.segment  than letters, digits, ".", "-" and "_" are written as in a URL
 *   00000000000000000000.index
 *   start
 * </pre>
 *
 * Blocks.
 */
final class StoreDirectory {
  private static final String FORMAT = "timebound-segments";
  private static final String LOCK = "lock";
  private static final String TOPICS = "topics";
  private static final String VERSION = "version 1";

  /** Of a topic whose partitions are being made; no topic's directory begins so. */
  private static final String UNFINISHED = "+";

  /** Ours before anything else is, or not a store's. */
  private static final Set<String> OTHERS = Set.of(LOCK, TOPICS, "lost+found");

  /** As everywhere in Kafka; file systems take 255, and {@link #UNFINISHED} is one. */
  private static final int LONGEST_NAME = 249;

  private final Path root;
  private final FileChannel lockFile;
  private final FileLock lock;

  private StoreDirectory(Path root, FileChannel lockFile, FileLock lock) {
    this.root = root;
    this.lockFile = lockFile;
    this.lock = lock;
  }

  /**
   * Makes it where there is none.
   *
   * @throws SegmentStoreException where it is in use, or something else than a store
   */
  static StoreDirectory open(Path root) throws IOException {
    Files.createDirectories(root);
    checkFormat(root);
    FileChannel file =
        FileChannel.open(root.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try {
      StoreDirectory opened = new StoreDirectory(root, file, lock(root, file));
      Files.createDirectories(root.resolve(TOPICS));
      Path format = root.resolve(FORMAT);
      if (!Files.exists(format) || Files.size(format) == 0) {
        Files.writeString(format, VERSION + "\n");
      }
      return opened;
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  private static FileLock lock(Path root, FileChannel file) throws IOException {
    @Nullable FileLock lock;
    try {
      lock = file.tryLock();
    } catch (OverlappingFileLockException e) {
      lock = null;
    }
    if (lock == null) {
      throw new SegmentStoreException(
          root.resolve(LOCK) + ": locked (expected: one store that has the directory open)", null);
    }
    return lock;
  }

  private static void checkFormat(Path root) throws IOException {
    Path format = root.resolve(FORMAT);
    if (Files.exists(format)) {
      String found = Files.readString(format).strip();
      // empty where the process died as it wrote it
      if (!found.equals(VERSION) && !found.isEmpty()) {
        throw SegmentStoreException.at(format, 0, "'" + found + "'", "'" + VERSION + "'");
      }
      return;
    }
    try (Stream<Path> files = Files.list(root)) {
      for (Path each : (Iterable<Path>) files::iterator) {
        if (!OTHERS.contains(each.getFileName().toString())) {
          throw SegmentStoreException.at(
              each, 0, "a file that is no store's", "an empty directory, or one with " + FORMAT);
        }
      }
    }
  }

  /** The partitions that are there, with their directories. */
  Map<TopicPartition, Path> partitions() throws IOException {
    Map<TopicPartition, Path> found = new LinkedHashMap<>();
    for (Path topic : list(root.resolve(TOPICS))) {
      String name = topic.getFileName().toString();
      if (name.startsWith(UNFINISHED)) {
        deleteAll(topic);
        continue;
      }
      for (Path partition : list(topic)) {
        found.put(new TopicPartition(decoded(name), number(partition)), partition);
      }
    }
    return found;
  }

  private static int number(Path partition) {
    try {
      int number = Integer.parseInt(partition.getFileName().toString());
      if (number >= 0 && Files.isDirectory(partition)) {
        return number;
      }
    } catch (NumberFormatException e) {
      // told below
    }
    throw SegmentStoreException.at(partition, 0, "a file of this name", "partitions' directories");
  }

  private static List<Path> list(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.sorted().toList();
    } catch (NotDirectoryException e) {
      throw SegmentStoreException.at(directory, 0, "a file", "a topic's directory");
    }
  }

  private static void deleteAll(Path directory) throws IOException {
    List<Path> all = new ArrayList<>();
    try (Stream<Path> files = Files.walk(directory)) {
      files.forEach(all::add);
    }
    for (int i = all.size() - 1; i >= 0; i--) {
      Files.delete(all.get(i));
    }
  }

  /**
   * Makes those of a topic's partitions that are not there: all of a new topic, or none.
   *
   * @return the directories of all of them, by number
   */
  synchronized List<Path> create(String topic, int partitions, boolean force) throws IOException {
    Path topics = root.resolve(TOPICS);
    Path directory = topics.resolve(encoded(topic));
    if (!Files.exists(directory)) {
      Path making = topics.resolve(UNFINISHED + encoded(topic));
      for (int i = 0; i < partitions; i++) {
        Files.createDirectories(making.resolve(Integer.toString(i)));
      }
      Files.move(making, directory, StandardCopyOption.ATOMIC_MOVE);
    }
    List<Path> all = new ArrayList<>();
    for (int i = 0; i < partitions; i++) {
      all.add(Files.createDirectories(directory.resolve(Integer.toString(i))));
    }
    if (force) {
      Disk.REAL.forceDirectory(directory);
      Disk.REAL.forceDirectory(topics);
    }
    return all;
  }

  void close() throws IOException {
    lock.release();
    lockFile.close();
  }

  /**
   * @throws IllegalArgumentException where no file could have the topic's name
   */
  static void requireName(String topic) {
    if (encoded(topic).length() > LONGEST_NAME) {
      throw SegmentStoreBuilder.refused(
          "topic", "'" + topic + "'", "at most " + LONGEST_NAME + " bytes in a file's name");
    }
  }

  /** A name that may be a file's everywhere, and begins with no dot and no {@link #UNFINISHED}. */
  private static String encoded(String topic) {
    String name = URLEncoder.encode(topic, StandardCharsets.UTF_8).replace("+", "%20");
    name = name.replace("*", "%2A");
    return name.startsWith(".") ? "%2E" + name.substring(1) : name;
  }

  private static String decoded(String name) {
    return URLDecoder.decode(name, StandardCharsets.UTF_8);
  }
}
