package dev.timebound.test;

import java.io.BufferedInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.tukaani.xz.XZInputStream;

/**
 * The programs of a Postgres and how they are run here: Postgres refuses to run as root, so root
 * runs it as another user.
 */
final class PostgresBinaries {
  /** The first with pg_backup_start, on which standbys are built here. */
  private static final int OLDEST = 15;

  private static final Pattern VERSION = Pattern.compile("\\(PostgreSQL\\) (\\d+)");
  private static final String NOBODY = "65534";

  private final Path bin;
  private final List<String> asUser;
  private final boolean changesUser;

  private PostgresBinaries(Path bin, List<String> asUser, boolean changesUser) {
    this.bin = bin;
    this.asUser = asUser;
    this.changesUser = changesUser;
  }

  /** Those that came as a Maven artifact, unpacked once for this JVM. */
  static PostgresBinaries embedded() {
    return Embedded.BINARIES;
  }

  /** Those in this directory ({@code …/bin}). */
  static PostgresBinaries in(Path bin) {
    Path postgres = bin.resolve("postgres");
    if (!Files.isExecutable(postgres) || !Files.isExecutable(bin.resolve("initdb"))) {
      throw new IllegalStateException(bin + " has no postgres and initdb that can be run");
    }
    List<String> refusals = new ArrayList<>();
    for (List<String> asUser : waysToRun()) {
      Ran ran = run(withArguments(asUser, postgres.toString(), "--version"));
      Matcher version = VERSION.matcher(ran.output());
      if (ran.exit() == 0 && version.find()) {
        if (Integer.parseInt(version.group(1)) < OLDEST) {
          throw new IllegalStateException(
              bin + " is of " + ran.output().strip() + " (expected: " + OLDEST + " or later)");
        }
        return new PostgresBinaries(bin, asUser, asUser.contains("setpriv"));
      }
      refusals.add(asUser + ": " + ran.output().strip());
    }
    throw new IllegalStateException("Postgres in " + bin + " cannot be run: " + refusals);
  }

  /** The ones of the server that is installed on this machine. */
  static PostgresBinaries installed() {
    return in(
        findInstalled()
            .orElseThrow(
                () ->
                    new IllegalStateException(
                        "no Postgres is installed: none on the PATH, none in"
                            + " /usr/lib/postgresql/*/bin")));
  }

  private static Optional<Path> findInstalled() {
    List<Path> found = new ArrayList<>();
    String path = System.getenv("PATH");
    for (String directory : path == null ? new String[0] : path.split(File.pathSeparator, -1)) {
      Path postgres = Path.of(directory, "postgres");
      if (!directory.isEmpty() && Files.isExecutable(postgres)) {
        try {
          // a link on the PATH leads to where its companions are
          Path home = postgres.toRealPath().getParent();
          if (home != null && Files.isExecutable(home.resolve("initdb"))) {
            found.add(home);
          }
        } catch (IOException e) {
          // a link that leads nowhere
        }
      }
    }
    try (Stream<Path> versions = Files.list(Path.of("/usr/lib/postgresql"))) {
      versions
          .filter(version -> version.getFileName().toString().matches("\\d+"))
          .sorted(
              Comparator.comparingInt(
                      (Path version) -> Integer.parseInt(version.getFileName().toString()))
                  .reversed())
          .map(version -> version.resolve("bin"))
          .filter(bin -> Files.isExecutable(bin.resolve("initdb")))
          .forEach(found::add);
    } catch (IOException e) {
      // not a machine that keeps them there
    }
    return found.stream().findFirst();
  }

  /** The directory they are in. */
  Path bin() {
    return bin;
  }

  /** The command line that runs one of the programs, as a user whom it does not refuse. */
  List<String> command(String program, String... arguments) {
    List<String> command = withArguments(asUser, bin.resolve(program).toString());
    command.addAll(List.of(arguments));
    return command;
  }

  /** Runs one of the programs to its end. */
  void run(String program, String... arguments) {
    Ran ran = run(command(program, arguments));
    if (ran.exit() != 0) {
      throw new IllegalStateException(program + " ended with " + ran.exit() + ": " + ran.output());
    }
  }

  /** Makes a directory that only the server's user may enter. */
  void makePrivateDirectory(Path directory) throws IOException {
    Files.createDirectory(directory);
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    own(directory);
  }

  /** Hands a file, or a whole tree, to the server's user. */
  void own(Path tree) throws IOException {
    if (!changesUser) {
      return;
    }
    // by number: the account may have no name here
    UserPrincipal nobody =
        tree.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByName(NOBODY);
    try (Stream<Path> all = Files.walk(tree)) {
      for (Path path : (Iterable<Path>) all::iterator) {
        Files.setOwner(path, nobody);
      }
    }
  }

  static ProcessBuilder process(List<String> command) {
    ProcessBuilder process = new ProcessBuilder(command);
    // PGDATA, PGPORT and the like of whoever runs the tests are not for this server
    process.environment().keySet().removeIf(name -> name.startsWith("PG"));
    process.environment().put("LC_ALL", "C");
    process.redirectErrorStream(true);
    return process;
  }

  private static List<List<String>> waysToRun() {
    if (!"root".equals(System.getProperty("user.name"))) {
      return List.of(List.of());
    }
    // both become the server itself, so that the process that was started is the postmaster
    return List.of(
        List.of("setpriv", "--reuid=" + NOBODY, "--regid=" + NOBODY, "--clear-groups"),
        List.of("unshare", "-U"));
  }

  private record Ran(int exit, String output) {}

  private static Ran run(List<String> command) {
    try {
      Process process = process(command).start();
      process.getOutputStream().close();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (!process.waitFor(60, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return new Ran(-1, "no end within 60 s: " + output);
      }
      return new Ran(process.exitValue(), output);
    } catch (IOException e) {
      return new Ran(-1, String.valueOf(e.getMessage()));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while " + command + " ran", e);
    }
  }

  private static List<String> withArguments(List<String> command, String... more) {
    List<String> all = new ArrayList<>(command);
    all.addAll(List.of(more));
    return all;
  }

  private static final class Embedded {
    static final PostgresBinaries BINARIES = unpack();

    private static PostgresBinaries unpack() {
      String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
      String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
      String archive =
          "/postgres-"
              + (os.contains("mac") ? "darwin" : os.contains("linux") ? "linux" : os)
              + "-"
              + (arch.equals("amd64") || arch.equals("x86_64") ? "x86_64" : arm(arch))
              + ".txz";
      Path target = PostgresHome.ofThisJvm().directory().resolve("postgres");
      try (InputStream packed = PostgresBinaries.class.getResourceAsStream(archive)) {
        if (packed == null) {
          return installedInstead(archive);
        }
        Files.createDirectory(target);
        Tar.unpack(
            new BufferedInputStream(new XZInputStream(new BufferedInputStream(packed))), target);
        return in(target.resolve("bin"));
      } catch (IOException e) {
        throw new UncheckedIOException("Postgres could not be unpacked to " + target, e);
      }
    }

    private static PostgresBinaries installedInstead(String archive) {
      return in(
          findInstalled()
              .orElseThrow(
                  () ->
                      new IllegalStateException(
                          "no Postgres for this machine: "
                              + archive
                              + " is not on the class path (an artifact of"
                              + " io.zonky.test.postgres has it), and none is installed")));
    }

    private static String arm(String arch) {
      return arch.equals("aarch64") ? "arm_64" : arch;
    }
  }
}
