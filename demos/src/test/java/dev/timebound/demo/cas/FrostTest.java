package dev.timebound.demo.cas;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.Digest;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class FrostTest {
  private static final int SHARD = 1;
  private static final Duration TIME = Duration.ofSeconds(4);

  private final Frost frost = new Frost(SHARD);
  private final Blob blob = new Blob(Digest.of(new byte[1]), 0, SHARD, true);

  private void read(long beganMillis, long tookMillis) {
    read(blob, beganMillis, tookMillis);
  }

  private void read(Blob of, long beganMillis, long tookMillis) {
    long began = TimeUnit.MILLISECONDS.toNanos(beganMillis);
    frost.firstByte(of, TIME, began, began + TimeUnit.MILLISECONDS.toNanos(tookMillis));
  }

  private void frozenFrom10sTo30s() {
    frost.frozen(TimeUnit.SECONDS.toNanos(10));
  }

  @Test
  @DisplayName("tells reads that waited before the shard had to be known from those after")
  void earlyAndLate() {
    frozenFrom10sTo30s();
    read(9_900, 2_000);
    read(12_400, 2_000);
    read(12_600, 2_000);
    read(12_600, 10);
    assertThat(frost.early()).isEqualTo(2);
    assertThat(frost.late()).isEqualTo(1);
  }

  @Test
  @DisplayName("counts neither another shard's reads nor those begun after the thaw")
  void others() {
    frozenFrom10sTo30s();
    read(new Blob(Digest.of(new byte[1]), 0, SHARD + 1, true), 20_000, 2_000);
    frost.thawed(TimeUnit.SECONDS.toNanos(30));
    read(29_000, 2_000);
    read(30_001, 2_000);
    assertThat(frost.early()).isZero();
    assertThat(frost.late()).isEqualTo(1);
  }

  @Test
  @DisplayName("compares the median first byte of small blobs once the shard is known")
  void added() {
    assertThat(frost.addedMillis()).isEqualTo(-1);
    read(500, 50);
    frost.measure();
    for (int i = 0; i < 9; i++) {
      read(1_000 + i, 2);
    }
    frozenFrom10sTo30s();
    read(10_100, 2_000);
    for (int i = 0; i < 9; i++) {
      read(15_000 + i, 5);
    }
    assertThat(frost.addedMillis()).isBetween(2.9, 3.1);
  }
}
