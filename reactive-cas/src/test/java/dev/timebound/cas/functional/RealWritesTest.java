package dev.timebound.cas.functional;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.BlobPresence;
import dev.timebound.cas.CasConfig;
import dev.timebound.cas.CasRing;
import dev.timebound.cas.DataLossException;
import dev.timebound.cas.Digest;
import dev.timebound.cas.ReadManyResult;
import dev.timebound.cas.WriteManyResult;
import dev.timebound.cas.WriteResult;
import dev.timebound.cas.kit.CasServer;
import dev.timebound.cas.kit.CasServers;
import dev.timebound.cas.kit.CasServersExtension;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;

/** Writes and batches on BuildStream's servers. */
class RealWritesTest {
  @RegisterExtension static final CasServersExtension SERVERS = CasServersExtension.of(3);

  private static final Duration LONG = Duration.ofSeconds(60);
  private final Random random = new Random(11);
  private final CasServers servers;
  private final CasRing ring;

  RealWritesTest(CasServers servers) {
    this.servers = servers;
    this.ring =
        CasRing.builder(
                new CasConfig(
                    servers.all().stream()
                        .map(s -> CasConfig.Shard.of(s.name(), s.hostAndPort()))
                        .toList()))
            .build();
  }

  @AfterEach
  void close() {
    ring.close();
  }

  private byte[] content(int size) {
    byte[] content = new byte[size];
    random.nextBytes(content);
    return content;
  }

  @Test
  @DisplayName("CAS-26 CAS-30 blobs of all sizes are written and read back")
  void thereAndBack() {
    for (int size : new int[] {1, 65_536, 1_000_000, 20 << 20}) {
      byte[] content = content(size);
      Digest digest = Digest.of(content);
      Flux<ByteBuffer> pieces =
          Flux.range(0, (size + 9_999) / 10_000)
              .map(
                  i ->
                      ByteBuffer.wrap(content, i * 10_000, Math.min(10_000, size - i * 10_000))
                          .slice());
      assertThat(ring.write(digest, pieces).block(LONG)).isNotNull();
      assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);
    }
  }

  @Test
  @DisplayName("CAS-26 a blob that is there may be written again")
  void there() {
    byte[] content = content(5 << 20);
    ring.write(content).block(LONG);
    assertThat(ring.write(content).map(WriteResult::digest).block(LONG))
        .isEqualTo(Digest.of(content));
  }

  @Test
  @DisplayName("CAS-30 other bytes than the digest's are not kept")
  void wrongContent() {
    byte[] content = content(300_000);
    Digest digest = Digest.of(content);
    content[7] ^= 1;
    assertThatThrownBy(() -> ring.write(digest, content).block(LONG))
        .isInstanceOf(DataLossException.class);
    assertThat(ring.findMissingStrict(Set.of(digest)).block(LONG)).containsExactly(digest);
  }

  @Test
  @DisplayName("CAS-31 many blobs in batches below the server's limit of 1 MiB, and back")
  void many() {
    List<byte[]> blobs = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      blobs.add(content(1000 + 100 * i));
    }
    blobs.add(content(1 << 20));
    blobs.add(content(3 << 20));
    assertThat(ring.writeMany(blobs).collectList().block(LONG))
        .hasSize(302)
        .allMatch(WriteManyResult::isOk);
    List<Digest> digests = blobs.stream().map(Digest::of).toList();
    assertThat(ring.readMany(digests).collectList().block(LONG))
        .hasSize(302)
        .allMatch(ReadManyResult::isOk);
    BlobPresence found = ring.findMissing(new HashSet<>(digests)).block(LONG);
    assertThat(found).isNotNull();
    assertThat(found.missingOrThrow()).isEmpty();
  }

  @Test
  @DisplayName(
      "CAS-3 CAS-26 a frozen home: an upload ends at the caller's deadline, elsewhere is none")
  void frozen() {
    byte[] content = content(20 << 20);
    servers.all().forEach(CasServer::freeze);
    long before = System.nanoTime();
    assertThatThrownBy(
            () ->
                ring.write(content).transform(Deadlines.within(Duration.ofSeconds(1))).block(LONG))
        .isInstanceOf(DeadlineExceededException.class);
    assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(Duration.ofSeconds(20));
  }
}
