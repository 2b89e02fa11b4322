package dev.timebound.test;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** The directories of a replica set: how a primary's is made, and a standby's from it. */
final class PostgresCluster {
  /** Directories whose content is of the running server only, not of its data. */
  private static final Set<String> NOT_BACKED_UP =
      Set.of(
          "pg_wal",
          "pg_replslot",
          "pg_dynshmem",
          "pg_notify",
          "pg_serial",
          "pg_snapshots",
          "pg_stat_tmp",
          "pg_subtrans");

  private static final Set<String> FILES_NOT_BACKED_UP =
      Set.of("postmaster.pid", "postmaster.opts", "postgresql.conf", "pg_internal.init");

  private final PostgresBinaries binaries;
  private final Path directory;
  private final Map<String, String> settings;
  private final boolean tls;

  PostgresCluster(
      PostgresBinaries binaries, Path directory, Map<String, String> settings, boolean tls) {
    this.binaries = binaries;
    this.directory = directory;
    this.settings = settings;
    this.tls = tls;
  }

  Path directory() {
    return directory;
  }

  Path data(String name) {
    return directory.resolve(name);
  }

  Path log(String name) {
    return directory.resolve(name + ".log");
  }

  Path certificate() {
    if (!tls) {
      throw new IllegalStateException("the replica set was built without tls()");
    }
    return directory.resolve("server.crt");
  }

  /** Makes an empty cluster for a primary. */
  void initialise(PostgresServer primary) {
    Path data = data(primary.name());
    try {
      if (tls) {
        copyResource("postgres-tls.crt", certificate());
      }
      binaries.makePrivateDirectory(data);
      binaries.run(
          "initdb",
          "--pgdata=" + data,
          "--username=" + PostgresServer.USER,
          "--auth=trust",
          "--encoding=UTF8",
          "--locale=C",
          "--no-sync");
      configure(primary, Map.of());
    } catch (IOException e) {
      throw new UncheckedIOException("could not make a cluster in " + data, e);
    }
  }

  /**
   * Makes a standby's directory, anew where there is one, from a base backup of the running
   * primary. The standby must not run.
   */
  void cloneFrom(PostgresServer primary, PostgresServer standby) {
    Path data = data(standby.name());
    try {
      PostgresHome.delete(data);
      binaries.makePrivateDirectory(data);
      try (Connection backup = primary.connect(PostgresQueries.APPLICATION);
          Statement statement = backup.createStatement()) {
        // the second argument: a checkpoint at once, not spread over minutes
        statement.execute("SELECT pg_backup_start('timebound', true)");
        copy(data(primary.name()), data);
        try (ResultSet end =
            statement.executeQuery("SELECT labelfile FROM pg_backup_stop(false)")) {
          end.next();
          Files.writeString(data.resolve("backup_label"), end.getString(1));
        }
      }
      Files.createFile(data.resolve("standby.signal"));
      configure(
          standby,
          Map.of(
              "primary_conninfo",
              "host="
                  + primary.host()
                  + " port="
                  + primary.port()
                  + " user="
                  + primary.user()
                  + " sslmode=disable application_name="
                  + standby.name()));
      binaries.own(data);
    } catch (IOException | SQLException e) {
      throw new IllegalStateException("no base backup of " + primary + " for " + standby, e);
    }
  }

  private void configure(PostgresServer server, Map<String, String> more) throws IOException {
    Path data = data(server.name());
    Map<String, String> all = new LinkedHashMap<>();
    all.put("unix_socket_directories", "");
    all.put("max_connections", "100");
    all.put("shared_buffers", "16MB");
    // in the data directory, so that a killed server leaves nothing outside of it
    all.put("dynamic_shared_memory_type", "mmap");
    all.put("fsync", "off");
    all.put("wal_level", "replica");
    all.put("max_wal_senders", "20");
    // a standby that was away or is made anew finds all it needs
    all.put("wal_keep_size", "512MB");
    all.put("hot_standby", "on");
    all.put("wal_retrieve_retry_interval", "100ms");
    // would take part in what tests measure, and cancel reads of a standby
    all.put("autovacuum", "off");
    all.put("max_logical_replication_workers", "0");
    all.put("log_connections", "on");
    all.put("log_disconnections", "on");
    all.put("log_line_prefix", "%m [%p] %a ");
    all.put("log_timezone", "UTC");
    all.put("timezone", "UTC");
    if (tls) {
      copyResource("postgres-tls.crt", data.resolve("server.crt"));
      Path key = data.resolve("server.key");
      copyResource("postgres-tls.key", key);
      Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-------"));
      all.put("ssl", "on");
    }
    all.putAll(more);
    all.putAll(settings);
    all.put("listen_addresses", server.host());
    all.put("port", Integer.toString(server.port()));
    StringBuilder file = new StringBuilder();
    all.forEach(
        (name, value) ->
            file.append(name).append(" = '").append(value.replace("'", "''")).append("'\n"));
    Files.writeString(data.resolve("postgresql.conf"), file);
    binaries.own(data);
  }

  private static void copyResource(String name, Path target) throws IOException {
    try (InputStream in = PostgresCluster.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IOException("not on the class path: " + name);
      }
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      Files.writeString(target, text);
    }
  }

  /** Copies a cluster that is written to meanwhile: what vanishes under way is not needed. */
  private static void copy(Path from, Path to) throws IOException {
    Files.walkFileTree(
        from,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes)
              throws IOException {
            Path relative = from.relativize(directory);
            Path target = to.resolve(relative);
            if (!directory.equals(from)) {
              Files.createDirectory(
                  target,
                  PosixFilePermissions.asFileAttribute(
                      PosixFilePermissions.fromString("rwx------")));
            }
            return NOT_BACKED_UP.contains(relative.toString())
                ? FileVisitResult.SKIP_SUBTREE
                : FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            if (!FILES_NOT_BACKED_UP.contains(file.getFileName().toString())) {
              try {
                Files.copy(
                    file,
                    to.resolve(from.relativize(file)),
                    StandardCopyOption.COPY_ATTRIBUTES,
                    StandardCopyOption.REPLACE_EXISTING);
              } catch (NoSuchFileException e) {
                return FileVisitResult.CONTINUE;
              }
            }
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
            if (e instanceof NoSuchFileException) {
              return FileVisitResult.CONTINUE;
            }
            throw e;
          }
        });
  }
}
