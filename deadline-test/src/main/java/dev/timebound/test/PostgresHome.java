package dev.timebound.test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The directory of this JVM under which its Postgres servers live. It goes, with all that still
 * runs in it, when the JVM ends; a JVM that was killed leaves one, which the next one clears away.
 */
final class PostgresHome {
  private static final String PREFIX = "timebound-postgres-";
  private static final String LOCK = "lock";

  private final Path directory;

  // held, never released: the lock of a live JVM is what keeps others from clearing its directory
  @SuppressWarnings("unused")
  private final FileLock lock;

  private final Set<AutoCloseable> open = ConcurrentHashMap.newKeySet();
  private final AtomicInteger names = new AtomicInteger();

  private PostgresHome(Path directory, FileLock lock) {
    this.directory = directory;
    this.lock = lock;
  }

  /** The one of this JVM, made at the first call. */
  static PostgresHome ofThisJvm() {
    return Holder.HOME;
  }

  Path directory() {
    return directory;
  }

  /** A directory of its own for a replica set; {@code running} is closed if the JVM ends first. */
  Path register(AutoCloseable running) throws IOException {
    open.add(running);
    Path own = Files.createDirectory(directory.resolve("set-" + names.incrementAndGet()));
    Files.setPosixFilePermissions(own, PosixFilePermissions.fromString("rwxr-xr-x"));
    return own;
  }

  void unregister(AutoCloseable stopped) {
    open.remove(stopped);
  }

  private void close() {
    for (AutoCloseable running : List.copyOf(open)) {
      try {
        running.close();
      } catch (Exception e) {
        // the JVM ends: no one is left to be told, and the others must still be stopped
        System.err.println("Postgres was not stopped in order: " + e);
      }
    }
    delete(directory);
  }

  private static PostgresHome make() {
    Path tmp = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath();
    clearAwayAfterKilledJvms();
    try {
      Path directory = Files.createTempDirectory(tmp, PREFIX + ProcessHandle.current().pid() + "-");
      // where root starts them, the servers run as another user, who must get through
      Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
      // locked under another name first, so that no one ever sees the lock's file unlocked
      Path made = Files.createFile(directory.resolve("lock.new"));
      FileLock lock = FileChannel.open(made, StandardOpenOption.WRITE).lock();
      Files.move(made, directory.resolve(LOCK), StandardCopyOption.ATOMIC_MOVE);
      PostgresHome home = new PostgresHome(directory, lock);
      Runtime.getRuntime().addShutdownHook(new Thread(home::close, "timebound-postgres-stop"));
      return home;
    } catch (IOException e) {
      throw new UncheckedIOException("no directory for Postgres under " + tmp, e);
    }
  }

  /** Ends the servers, and deletes the directories, of JVMs that had no time to do so. */
  static void clearAwayAfterKilledJvms() {
    Path tmp = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath();
    String mine = PREFIX + ProcessHandle.current().pid() + "-";
    try (Stream<Path> all = Files.list(tmp)) {
      all.filter(path -> path.getFileName().toString().startsWith(PREFIX))
          .filter(path -> !path.getFileName().toString().startsWith(mine))
          .filter(PostgresHome::isAbandoned)
          .forEach(
              path -> {
                killWhatRunsIn(path);
                delete(path);
              });
    } catch (IOException | UncheckedIOException e) {
      // another user's, or being cleared by another JVM: not this one's to clear
    }
  }

  /** Whether the JVM that made it is gone: its lock is free. */
  private static boolean isAbandoned(Path home) {
    try (FileChannel channel = FileChannel.open(home.resolve(LOCK), StandardOpenOption.WRITE);
        FileLock free = channel.tryLock()) {
      return free != null;
    } catch (IOException | OverlappingFileLockException e) {
      return false;
    }
  }

  private static void killWhatRunsIn(Path home) {
    try (Stream<Path> all = Files.walk(home, 3)) {
      all.filter(path -> path.endsWith("postmaster.pid")).forEach(PostgresHome::killOwnerOf);
    } catch (IOException | UncheckedIOException e) {
      // it vanished under way: nothing runs in it
    }
  }

  private static void killOwnerOf(Path pidFile) {
    try {
      long pid = Long.parseLong(Files.readAllLines(pidFile).get(0).strip());
      // the number may be another's by now; a server stands in its data directory
      Path standsIn = Path.of("/proc/" + pid + "/cwd").toRealPath();
      Path data = pidFile.toRealPath().getParent();
      if (data != null && standsIn.equals(data)) {
        ProcessHandle.of(pid)
            .ifPresent(
                postmaster -> {
                  List<ProcessHandle> children = postmaster.descendants().toList();
                  postmaster.destroyForcibly();
                  children.forEach(ProcessHandle::destroyForcibly);
                });
        PostgresProcess.removeSharedMemory(data);
      }
    } catch (IOException | RuntimeException e) {
      // it is gone
    }
  }

  /** Deletes all of it; what vanishes meanwhile is as good as deleted. */
  static void delete(Path tree) {
    try {
      Files.walkFileTree(
          tree,
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                throws IOException {
              Files.deleteIfExists(file);
              return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
              if (e instanceof NoSuchFileException) {
                return FileVisitResult.CONTINUE;
              }
              throw e;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException e)
                throws IOException {
              Files.deleteIfExists(directory);
              return FileVisitResult.CONTINUE;
            }
          });
    } catch (IOException e) {
      throw new UncheckedIOException("could not delete " + tree, e);
    }
  }

  private static final class Holder {
    static final PostgresHome HOME = make();
  }
}
