package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;

@Timeout(120)
class PostgresReplicaSetLifeTest {

  @Test
  @DisplayName("a set of one's own has its settings, and when closed leaves no process and no file")
  void own() throws IOException {
    PostgresReplicaSet own =
        PostgresReplicaSet.builder().standbys(1).setting("work_mem", "123kB").start();
    List<Long> pids = new ArrayList<>(own.primary().process().pids());
    pids.addAll(own.standby().process().pids());
    Path directory = own.primary().process().directory();
    String segment =
        Files.readAllLines(directory.resolve("postmaster.pid")).get(6).strip().split("\\s+", -1)[1];
    try {
      assertThat(own.primary().value("SHOW work_mem")).isEqualTo("123kB");
      assertThat(own.standby().value("SHOW work_mem")).isEqualTo("123kB");
      assertThat(own.primary().value("SHOW ssl")).isEqualTo("off");
      assertThatThrownBy(own::certificate).hasMessageContaining("tls()");
      assertThat(directory).isDirectory();
      assertThat(sharedMemory()).contains(segment);
      own.standby().freeze();
      own.primary().kill();
    } finally {
      own.close();
      own.close();
    }
    assertThat(pids).noneMatch(PostgresProcess::isAlive);
    assertThat(directory.getParent()).doesNotExist();
    assertThat(sharedMemory()).doesNotContain(segment);
    assertThatThrownBy(() -> own.standby(2)).hasMessageContaining("closed");
  }

  @Test
  @DisplayName("an installed server is used where it is asked for")
  void installed() {
    boolean there =
        Files.isDirectory(Path.of("/usr/lib/postgresql"))
            || Arrays.stream(System.getenv("PATH").split(":", -1))
                .anyMatch(directory -> Files.isExecutable(Path.of(directory, "postgres")));
    assumeThat(there).as("a Postgres is installed").isTrue();
    try (PostgresReplicaSet set = PostgresReplicaSet.builder().installed().start()) {
      set.primary().execute("CREATE TABLE t AS SELECT 5 AS n");
      set.awaitReplay();
      assertThat(set.standby().value("SELECT n FROM t")).isEqualTo("5");
    }
  }

  @Test
  @DisplayName(
      "settings that cannot be are refused at once, by name; a server that ends has its log told")
  void refused() {
    PostgresReplicaSet.Builder builder = PostgresReplicaSet.builder();
    assertThatThrownBy(() -> builder.standbys(9)).hasMessage("standbys: 9 (expected: from 0 to 8)");
    assertThatThrownBy(() -> builder.setting("port", "1")).hasMessageContaining("setting: port");
    assertThatThrownBy(() -> builder.binaries(Path.of("/nowhere")).start())
        .hasMessageContaining("/nowhere has no postgres");
    assertThatThrownBy(
            () -> PostgresReplicaSet.builder().setting("shared_buffers", "wrong").start())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("invalid value for parameter \"shared_buffers\"");
  }

  @Test
  @DisplayName(
      "a JVM that ends takes its servers along; what a killed one left, the next one clears")
  void theEndOfTheJvm() throws Exception {
    Process ends = child("ends");
    Process dies = child("dies");
    try (BufferedReader first = ends.inputReader();
        BufferedReader second = dies.inputReader()) {
      Path endsIn = Path.of(first.readLine());
      long endsPid = Long.parseLong(first.readLine());
      Path diesIn = Path.of(second.readLine());
      long diesPid = Long.parseLong(second.readLine());
      assertThat(ends.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(ends.exitValue()).isZero();
      assertThat(endsIn).doesNotExist();
      assertThat(PostgresProcess.isAlive(endsPid)).isFalse();

      assertThat(PostgresProcess.isAlive(diesPid)).isTrue();
      dies.destroyForcibly();
      assertThat(dies.waitFor(60, TimeUnit.SECONDS)).isTrue();
      PostgresHome.clearAwayAfterKilledJvms();
      assertThat(diesIn).doesNotExist();
      eventually("its server is gone", () -> !PostgresProcess.isAlive(diesPid));
    }
  }

  /** The ids of the segments that there are on this machine. */
  private static List<String> sharedMemory() throws IOException {
    return Files.readAllLines(Path.of("/proc/sysvipc/shm")).stream()
        .skip(1)
        .map(line -> line.strip().split("\\s+", -1)[1])
        .toList();
  }

  /** A JVM that starts a set, says where, and then ends, or waits to be killed. */
  static final class Child {
    public static void main(String[] how) throws IOException {
      PostgresReplicaSet set =
          PostgresReplicaSet.builder().binaries(Path.of(how[1])).standbys(0).start();
      System.out.println(PostgresHome.ofThisJvm().directory());
      System.out.println(set.primary().process().pids().get(0));
      if (how[0].equals("dies")) {
        set.primary().freeze();
        System.in.read();
      }
    }
  }

  private static Process child(String how) throws IOException {
    return new ProcessBuilder(
            ProcessHandle.current().info().command().orElse("java"),
            "-cp",
            System.getProperty("java.class.path"),
            Child.class.getName(),
            how,
            PostgresBinaries.embedded().bin().toString())
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  @Nested
  @TestMethodOrder(MethodOrderer.OrderAnnotation.class)
  @ExtendWith(PostgresReplicaSetExtension.class)
  class AfterATest {
    @Test
    @Order(1)
    @DisplayName("(a test makes faults and leaves them)")
    void faults(PostgresReplicaSet postgres) {
      postgres.standby().pauseReplay();
      postgres.standby().freeze();
      postgres.primary().kill();
    }

    @Test
    @Order(2)
    @DisplayName("the faults that a test made are undone after it")
    void healed(PostgresReplicaSet postgres) {
      assertThat(postgres.primary().isRunning()).isTrue();
      assertThat(postgres.standby().isFrozen()).isFalse();
      postgres.standby().awaitReplay();
    }
  }

  @Nested
  class OfItsOwn {
    private static @Nullable PostgresReplicaSet seen;

    @RegisterExtension
    static final PostgresReplicaSetExtension POSTGRES =
        PostgresReplicaSetExtension.of(
            PostgresReplicaSet.builder().standbys(0).setting("max_connections", "17"));

    @Test
    @DisplayName("a class may have a set of its own")
    void one(PostgresReplicaSet own) {
      same(own);
    }

    @Test
    @DisplayName("which is one for all its methods")
    void forAll(PostgresReplicaSet own) {
      same(own);
    }

    private void same(PostgresReplicaSet own) {
      assertThat(own).isNotSameAs(PostgresReplicaSet.shared());
      assertThat(own.primary().value("SHOW max_connections")).isEqualTo("17");
      assertThat(seen).isIn(null, own);
      seen = own;
    }
  }
}
