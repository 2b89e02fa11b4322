package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ShardSelectorTest {
  @Nested
  class Weighted {
    private final List<ShardSelector> rings =
        List.of(
            ShardSelector.weighted(1, 1),
            ShardSelector.weighted(1, 1, 1, 1, 1, 1),
            ShardSelector.weighted(1, 1, 1, 100, 1, 1),
            ShardSelector.weighted(3, 1, 2),
            ShardSelector.weighted(100_000, 1));

    @Test
    @DisplayName("CAS-10 keys and homes are those of the deployed systems")
    void vectors() {
      List<String[]> rows = Vectors.of("shard-vectors.csv");
      assertThat(rows).hasSizeGreaterThanOrEqualTo(35);
      for (String[] row : rows) {
        Digest digest = Digest.parse(row[0] + "/" + row[1]);
        assertThat(Integer.toUnsignedString(digest.ringKey()))
            .as("key of %s", digest)
            .isEqualTo(row[2]);
        for (int i = 0; i < rings.size(); i++) {
          assertThat(rings.get(i).home(digest))
              .as("home of %s in ring %s", digest, i)
              .isEqualTo(Integer.parseInt(row[3 + i]));
        }
      }
    }

    @Test
    @DisplayName("CAS-10 a shard's last key is its own, the next one its neighbour's")
    void edges() {
      ShardSelector ring = ShardSelector.weighted(3, 1, 2);
      assertThat(homeOfKey(ring, 0)).isEqualTo(0);
      assertThat(homeOfKey(ring, 2147483647L)).isEqualTo(0);
      assertThat(homeOfKey(ring, 2147483648L)).isEqualTo(1);
      assertThat(homeOfKey(ring, 2863311529L)).isEqualTo(1);
      assertThat(homeOfKey(ring, 2863311530L)).isEqualTo(2);
      assertThat(homeOfKey(ring, 4294967295L)).isEqualTo(2);
    }

    @Test
    @DisplayName("CAS-10 the heaviest weights there are do not overflow")
    void heaviest() {
      int[] weights = new int[64];
      Arrays.fill(weights, Integer.MAX_VALUE);
      ShardSelector ring = ShardSelector.weighted(weights);
      assertThat(homeOfKey(ring, 67108863L)).isEqualTo(0);
      assertThat(homeOfKey(ring, 67108864L)).isEqualTo(1);
      assertThat(homeOfKey(ring, 4294967295L)).isEqualTo(63);
    }

    @Test
    @DisplayName("CAS-10 a shard too light for a key of its own gets none, and breaks nothing")
    void tooLight() {
      int heavy = Integer.MAX_VALUE;
      ShardSelector ring = ShardSelector.weighted(heavy, heavy, heavy, 1, heavy);
      assertThat(homeOfKey(ring, 3221225469L)).isEqualTo(2);
      assertThat(homeOfKey(ring, 3221225470L)).isEqualTo(4);
    }

    /** Under a hash of zeros the key is the size, as long as that has 32 bits. */
    private int homeOfKey(ShardSelector ring, long key) {
      return ring.home(Digest.of(new byte[32], key, DigestFunction.SHA256));
    }

    @Test
    @DisplayName("CAS-11 the ring's order from the home on gives the candidates")
    void ringOrder() {
      for (ShardSelector ring : rings) {
        for (Digest digest : digests(200)) {
          int home = ring.home(digest);
          int n = ring.shards();
          assertThat(ring.candidates(digest))
              .containsExactly(IntStream.range(0, n).map(i -> (home + i) % n).toArray());
        }
      }
    }
  }

  @Nested
  class Rendezvous {
    private final List<String> keys = List.of("a", "b", "c", "d", "e");
    private final int[] weights = {1, 4, 2, 2, 1};

    @Test
    @DisplayName("CAS-10a every order is that of a second implementation")
    void vectors() {
      List<ShardSelector> selectors =
          List.of(
              ShardSelector.rendezvous(List.of("a", "b", "c", "d"), 1, 1, 1, 1),
              ShardSelector.rendezvous(List.of("shard-0", "shard-1", "shard-2"), 3, 1, 2),
              ShardSelector.rendezvous(List.of("x", "y"), 100_000, 1));
      List<String[]> rows = Vectors.of("rendezvous-vectors.csv");
      assertThat(rows).hasSize(40);
      for (String[] row : rows) {
        Digest digest = Digest.of(row[0], 1, DigestFunction.SHA256);
        for (int i = 0; i < selectors.size(); i++) {
          int[] order = Arrays.stream(row[1 + i].split(" ")).mapToInt(Integer::parseInt).toArray();
          assertThat(selectors.get(i).candidates(digest)).as(row[0]).containsExactly(order);
        }
      }
    }

    @Test
    @DisplayName("CAS-10a the home is the first candidate, and every shard is one once")
    void everyShardOnce() {
      ShardSelector selector = ShardSelector.rendezvous(keys, weights);
      for (Digest digest : digests(500)) {
        int[] order = selector.candidates(digest);
        assertThat(order).containsExactlyInAnyOrder(0, 1, 2, 3, 4);
        assertThat(order[0]).isEqualTo(selector.home(digest));
      }
    }

    @Test
    @DisplayName("CAS-10a the order in which shards are configured does not matter")
    void reordered() {
      ShardSelector selector = ShardSelector.rendezvous(keys, weights);
      List<String> turned = List.of("d", "a", "e", "c", "b");
      ShardSelector other = ShardSelector.rendezvous(turned, 2, 1, 1, 2, 4);
      for (Digest digest : digests(500)) {
        assertThat(names(other, turned, digest)).isEqualTo(names(selector, keys, digest));
      }
    }

    @Test
    @DisplayName("CAS-10a a shard that is added takes blobs for itself and moves no other")
    void added() {
      ShardSelector before = ShardSelector.rendezvous(keys, weights);
      List<String> more = new ArrayList<>(keys);
      more.add("f");
      ShardSelector after = ShardSelector.rendezvous(more, 1, 4, 2, 2, 1, 2);
      int moved = 0;
      List<Digest> digests = digests(4000);
      for (Digest digest : digests) {
        List<String> order = new ArrayList<>(names(after, more, digest));
        moved += order.get(0).equals("f") ? 1 : 0;
        order.remove("f");
        assertThat(order).isEqualTo(names(before, keys, digest));
      }
      assertThat(moved / (double) digests.size()).isCloseTo(2 / 12.0, within(0.03));
    }

    @Test
    @DisplayName(
        "CAS-10a of two shards with one score the one with the lower hash is before the other")
    void ties() {
      List<String> keys = List.of("cas-0", "cas-1", "cas-2", "cas-3");
      int[] weights = {1, 1, 1, 1};
      ShardSelector selector = ShardSelector.rendezvous(keys, weights);
      long[] hashes =
          keys.stream()
              .mapToLong(key -> Digest.of(key.getBytes(StandardCharsets.UTF_8)).hashHead())
              .toArray();
      int ties = 0;
      for (int i = 0; ties < 3; i++) {
        assertThat(i).isLessThan(2_000_000);
        Digest digest =
            Digest.of(
                String.format("%016x%048d", i * 0x9E3779B97F4A7C15L, 0), 1, DigestFunction.SHA256);
        int[] order = selector.candidates(digest);
        for (int n = 1; n < order.length; n++) {
          long one = score(hashes[order[n - 1]] ^ digest.hashHead());
          long other = score(hashes[order[n]] ^ digest.hashHead());
          assertThat(one).isGreaterThanOrEqualTo(other);
          if (one == other) {
            ties++;
            assertThat(Long.compareUnsigned(hashes[order[n - 1]], hashes[order[n]])).isNegative();
          }
        }
      }
    }

    /** Of weight 1, worked out anew: 2^32 by what the logarithm of the mixed number lacks. */
    private static long score(long x) {
      long y = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
      y = (y ^ (y >>> 27)) * 0x94d049bb133111ebL;
      y ^= y >>> 31;
      int whole = 63 - Long.numberOfLeadingZeros(y);
      long mantissa = y << (64 - whole);
      int entry = (int) (mantissa >>> 58);
      long low = Math.round(StrictMath.log1p(entry / 64.0) / StrictMath.log(2) * 65536);
      long high = Math.round(StrictMath.log1p((entry + 1) / 64.0) / StrictMath.log(2) * 65536);
      long fraction = ((low << 48) + (high - low) * ((mantissa << 6) >>> 16)) >>> 48;
      return (1L << 32) / ((64L << 16) - (((long) whole << 16) | fraction));
    }

    @Test
    @DisplayName("CAS-10a each shard has its weight's part of the blobs")
    void proportional() {
      ShardSelector selector = ShardSelector.rendezvous(keys, weights);
      int[] count = new int[keys.size()];
      List<Digest> digests = digests(10_000);
      digests.forEach(digest -> count[selector.home(digest)]++);
      for (int i = 0; i < count.length; i++) {
        assertThat(count[i] / (double) digests.size()).isCloseTo(weights[i] / 10.0, within(0.02));
      }
    }

    @Test
    void refused() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> ShardSelector.rendezvous(List.of("a", "b", "a"), 1, 1, 1))
          .withMessage("key of shard 2: a (expected: another hash than a has)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> ShardSelector.rendezvous(List.of("a", "b"), 1))
          .withMessage("weights: 1 (expected: one for each of 2 keys)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> ShardSelector.rendezvous(List.of("a", "b"), 1, 0))
          .withMessage("weight of shard 1: 0 (expected: >= 1)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> ShardSelector.rendezvous(List.of()))
          .withMessage("shards: none (expected: at least 1)");
    }

    private List<String> names(ShardSelector selector, List<String> keys, Digest digest) {
      return Arrays.stream(selector.candidates(digest)).mapToObj(keys::get).toList();
    }
  }

  @ParameterizedTest
  @DisplayName("CAS-10 a weight below 1 is refused when the ring is built")
  @ValueSource(ints = {0, -1, Integer.MIN_VALUE})
  void badWeight(int weight) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> ShardSelector.weighted(1, weight))
        .withMessage("weight of shard 1: " + weight + " (expected: >= 1)");
  }

  @Test
  @DisplayName("CAS-10 no shard at all is refused when the ring is built")
  void noShard() {
    assertThatIllegalArgumentException()
        .isThrownBy(ShardSelector::weighted)
        .withMessage("shards: none (expected: at least 1)");
  }

  @Test
  @DisplayName("CAS-10 a lookup allocates nothing")
  void noAllocation() {
    List<ShardSelector> selectors =
        List.of(
            ShardSelector.weighted(3, 1, 2),
            ShardSelector.rendezvous(List.of("a", "b", "c"), 3, 1, 2));
    Digest[] digests = digests(1000).toArray(Digest[]::new);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    for (ShardSelector selector : selectors) {
      sumOfHomes(selector, digests);
      long before = threads.getCurrentThreadAllocatedBytes();
      long sum = sumOfHomes(selector, digests);
      long allocated = threads.getCurrentThreadAllocatedBytes() - before;
      assertThat(sum).isPositive();
      assertThat(allocated).as("bytes for 100,000 lookups").isLessThan(100_000);
    }
  }

  private static long sumOfHomes(ShardSelector selector, Digest[] digests) {
    long sum = 0;
    for (int round = 0; round < 100; round++) {
      for (Digest digest : digests) {
        sum += selector.home(digest);
      }
    }
    return sum;
  }

  private static List<Digest> digests(int n) {
    Random random = new Random(42);
    List<Digest> digests = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      byte[] hash = new byte[32];
      random.nextBytes(hash);
      digests.add(Digest.of(hash, random.nextInt(1 << 20), DigestFunction.SHA256));
    }
    return digests;
  }
}
