package dev.timebound.health;

import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** The example of docs/health.md, as it stands there. */
class DocsExampleTest {
  record Mount(String name, Path root) implements Member {
    @Override
    public Mono<ProbeAnswer> probe() {
      return Mono.fromCallable(
              () -> Files.isDirectory(root) ? ProbeAnswer.ANSWERED : ProbeAnswer.CONNECTION_FAILED)
          .subscribeOn(Schedulers.boundedElastic());
    }
  }

  @Test
  @DisplayName("HE-1 the engine serves plain members: the example in the docs")
  void mounts(@TempDir Path mnt) throws IOException {
    for (String n : List.of("a", "b", "c")) {
      Files.writeString(Files.createDirectory(mnt.resolve(n)).resolve("file"), n);
    }
    HealthEngine engine = HealthEngine.builder().build();
    HealthGroup<Mount> mounts =
        engine.group(
            "mounts",
            HealthPolicy.consecutiveFailures(3)
                .confirmedByProbe(ofSeconds(1))
                .penalty(10, ofSeconds(5))
                .build());
    List.of("a", "b", "c").forEach(n -> mounts.add(new Mount(n, mnt.resolve(n))));

    assertThat(read(mounts, "file")).isIn("a", "b", "c");
    assertThat(read(mounts, "none")).isEmpty();
    Files.delete(mnt.resolve("a/file"));
    Files.delete(mnt.resolve("a"));
    for (int i = 0; i < 50; i++) {
      read(mounts, "file");
    }
    assertThat(mounts.openClaims()).isZero();
    assertThat(mounts.members()).extracting(MemberHealth::penalty).containsExactly(10, 0, 0);
    engine.close();
  }

  private static String read(HealthGroup<Mount> mounts, String file) {
    Claim<Mount> claim = mounts.pick(mount -> false, null);
    if (claim == null) {
      throw new IllegalStateException("empty group");
    }
    try {
      byte[] bytes = Files.readAllBytes(claim.member().root().resolve(file));
      claim.succeeded();
      return new String(bytes, StandardCharsets.UTF_8);
    } catch (IOException e) {
      boolean saidNo = e instanceof NoSuchFileException && Files.isDirectory(claim.member().root());
      claim.failed(saidNo ? FailureKind.ANSWER : FailureKind.CONNECTION, e);
    } finally {
      claim.cancelled();
    }
    return "";
  }
}
