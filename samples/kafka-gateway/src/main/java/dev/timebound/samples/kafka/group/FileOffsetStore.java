package dev.timebound.samples.kafka.group;

import dev.timebound.fetch.TopicPartition;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import reactor.core.publisher.Mono;

/**
 * Keeps them in a directory that one process uses at a time: a file for each group, which a commit
 * replaces by a whole new one. A commit returns once it is on the disk; a crash leaves the file as
 * it was or as it is to be. One thread waits for the disk, in the order of the calls; a cancel
 * stops none that has begun.
 *
 * <p>A file is named by its group's SHA-256, for a group may have any name. Big-endian: magic and
 * version (8 bytes), the group's name, the number of partitions (4), of each its topic, number (4),
 * offset (8), leader epoch (4) and metadata, and a crc32c of all that (4). Texts are a length (2)
 * and UTF-8.
 */
public final class FileOffsetStore implements OffsetStore {
  private static final long MAGIC = 0x5442_4752_4F55_5031L; // "TBGROUP1"
  private static final int CRC = Integer.BYTES;
  private static final long IDLE_SECONDS = 60;

  private final Path directory;
  private final ThreadPoolExecutor thread =
      new ThreadPoolExecutor(
          1,
          1,
          IDLE_SECONDS,
          TimeUnit.SECONDS,
          new LinkedBlockingQueue<>(),
          task -> {
            Thread made = new Thread(task, "kafka-group-offsets");
            made.setDaemon(true);
            return made;
          });

  /**
   * @param directory made by the first commit where it is not there
   */
  public FileOffsetStore(Path directory) {
    this.directory = directory;
    thread.allowCoreThreadTimeOut(true);
  }

  @Override
  public Mono<Void> commit(String group, Map<TopicPartition, Committed> offsets) {
    return call(() -> {
          Map<TopicPartition, Committed> all = new HashMap<>(read(group));
          all.putAll(offsets);
          write(group, all);
          return true;
        })
        .then();
  }

  @Override
  public Mono<Map<TopicPartition, Committed>> committed(String group) {
    return call(() -> read(group));
  }

  /** What came before is written; what comes later fails. */
  public Mono<Void> close() {
    return call(() -> true)
        .onErrorComplete(RejectedExecutionException.class)
        .then(Mono.fromRunnable(thread::shutdown));
  }

  /** No interrupt: it would close the file that is waited for. */
  private <T> Mono<T> call(Callable<T> work) {
    return Mono.create(
        sink ->
            thread.execute(
                () -> {
                  try {
                    sink.success(work.call());
                  } catch (Exception e) {
                    sink.error(e);
                  }
                }));
  }

  private Path file(String group) {
    try {
      byte[] hash =
          MessageDigest.getInstance("SHA-256").digest(group.getBytes(StandardCharsets.UTF_8));
      return directory.resolve(HexFormat.of().formatHex(hash));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // each Java has it
    }
  }

  private void write(String group, Map<TopicPartition, Committed> offsets) throws IOException {
    Files.createDirectories(directory);
    Path file = file(group);
    Path written = file.resolveSibling(file.getFileName() + ".new");
    ByteBuffer bytes = bytes(group, offsets);
    try (FileChannel channel =
        FileChannel.open(
            written,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
      channel.force(false);
    }
    Files.move(written, file, StandardCopyOption.ATOMIC_MOVE);
    try (FileChannel entries = FileChannel.open(directory, StandardOpenOption.READ)) {
      entries.force(true);
    }
  }

  private static ByteBuffer bytes(String group, Map<TopicPartition, Committed> offsets)
      throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeLong(MAGIC);
    out.writeUTF(group);
    out.writeInt(offsets.size());
    for (Map.Entry<TopicPartition, Committed> each : offsets.entrySet()) {
      out.writeUTF(each.getKey().topic());
      out.writeInt(each.getKey().partition());
      out.writeLong(each.getValue().offset());
      out.writeInt(each.getValue().leaderEpoch());
      out.writeUTF(each.getValue().metadata());
    }
    out.writeInt(crc(bytes.toByteArray(), bytes.size()));
    return ByteBuffer.wrap(bytes.toByteArray());
  }

  private Map<TopicPartition, Committed> read(String group) throws IOException {
    Path file = file(group);
    byte[] bytes;
    try {
      bytes = Files.readAllBytes(file);
    } catch (NoSuchFileException e) {
      return Map.of();
    }
    int length = bytes.length - CRC;
    if (length < 0 || ByteBuffer.wrap(bytes).getInt(length) != crc(bytes, length)) {
      throw new IOException(
          file + ": " + bytes.length + " bytes of another crc32c (expected: as it was written)");
    }
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    long magic = in.readLong();
    String of = magic == MAGIC ? in.readUTF() : "";
    if (magic != MAGIC || !of.equals(group)) {
      throw new IOException(
          "%s: magic %x, group '%s' (expected: %x, '%s')".formatted(file, magic, of, MAGIC, group));
    }
    Map<TopicPartition, Committed> found = new HashMap<>();
    for (int left = in.readInt(); left > 0; left--) {
      TopicPartition partition = new TopicPartition(in.readUTF(), in.readInt());
      found.put(partition, new Committed(in.readLong(), in.readInt(), in.readUTF()));
    }
    return Map.copyOf(found);
  }

  private static int crc(byte[] bytes, int length) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, length);
    return (int) crc.getValue();
  }
}
