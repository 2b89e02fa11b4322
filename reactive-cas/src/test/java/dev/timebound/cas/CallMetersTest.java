package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import io.grpc.Status;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.management.ManagementFactory;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What a ring counts of its calls. */
class CallMetersTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

  private double count(String name, String... tags) {
    Counter counter = registry.find(name).tags(tags).counter();
    return counter == null ? 0 : counter.count();
  }

  @Test
  @DisplayName("CAS-21 reads, bytes, failovers, resumes and mismatches are counted")
  void counted() {
    TestRing t = ring(3, settings -> settings.meters(registry).resumeMidStream(true).retries(0));
    byte[] content = t.contentOf(0, 1000);
    Digest digest = t.put(content, 0, 1);
    t.readsRight(digest);
    t.server(0)
        .reads()
        .next(
            CasScript.status(Status.UNAVAILABLE),
            CasScript.correct()
                .chunkSize(400)
                .stopAfter(1, dev.timebound.cas.kit.CasEnd.status(Status.UNAVAILABLE)),
            CasScript.correct().wrongByteAt(1));
    t.readsRight(digest);
    t.readsRight(digest);
    failure(t.ring.read(digest));
    t.server(0).findMissing().next(CasScript.status(Status.UNAVAILABLE));
    t.ring.findMissing(Set.of(digest)).block(LONG);
    t.ring.read(digest).take(1).blockLast(LONG);

    Timer ok = registry.find("timebound.cas.reads").tags("outcome", "ok", "ring", "cas").timer();
    assertThat(ok).isNotNull();
    assertThat(ok.count()).isGreaterThanOrEqualTo(3);
    assertThat(registry.find("timebound.cas.reads").tags("outcome", "data_loss").timer())
        .isNotNull();
    assertThat(count("timebound.cas.read.bytes")).isEqualTo(4000);
    assertThat(count("timebound.cas.failovers", "from", "s0", "to", "s1")).isEqualTo(2);
    assertThat(count("timebound.cas.resumes")).isEqualTo(1);
    assertThat(count("timebound.cas.mismatches")).isEqualTo(1);
    assertThat(count("timebound.cas.lookup.failures", "shard", "s0")).isEqualTo(1);

    t.kill(2);
    until("it is counted", () -> count("timebound.cas.connect.failures") >= 1);
  }

  @Test
  @DisplayName("CAS-20 each call to a shard is counted, by shard, operation and outcome")
  void calls() {
    TestRing t = ring(2, settings -> settings.meters(registry).retries(0));
    Digest digest = t.put(0, 0, 1);
    t.readsRight(digest);
    t.server(0).reads().next(CasScript.status(Status.UNAVAILABLE));
    t.readsRight(digest);
    failure(t.ring.read(t.put(0)));
    t.ring.write(t.contentOf(1, 10)).block(LONG);
    t.server(1).writes().next(CasScript.status(Status.INVALID_ARGUMENT));
    failure(t.ring.write(t.contentOf(1, 10)));
    t.ring.findMissing(Set.of(digest)).block(LONG);
    t.server(0).reads().always(CasScript.silence());
    var given = t.ring.read(digest).subscribe();
    t.server(0).reads().awaitCall(4);
    given.dispose();

    assertThat(calls("s0", "read", "ok")).isEqualTo(1);
    assertThat(calls("s0", "read", "unavailable")).isEqualTo(1);
    assertThat(calls("s1", "read", "ok")).isEqualTo(1);
    assertThat(calls("s0", "read", "not_found")).isEqualTo(1);
    assertThat(calls("s0", "read", "cancelled")).isEqualTo(1);
    assertThat(calls("s1", "get-capabilities", "ok")).isEqualTo(1);
    assertThat(calls("s1", "write", "ok")).isEqualTo(1);
    assertThat(calls("s1", "write", "invalid_argument")).isEqualTo(1);
    assertThat(calls("s0", "find-missing-blobs", "ok")).isEqualTo(1);
  }

  private double calls(String shard, String operation, String outcome) {
    return count("timebound.cas.calls", "shard", shard, "operation", operation, "outcome", outcome);
  }

  @Test
  @DisplayName("CAS-20 a call whose like was counted before makes nothing to be counted")
  void nothingIsMade() {
    CasMeters meters = CasMeters.of(registry, "cas");
    String method = "google.bytestream.ByteStream/Read";
    var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 20; i++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int n = 0; n < 1000; n++) {
        meters.called("s0", method, CasMeters.OK);
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    assertThat(least).isLessThan(1000);
    assertThat(calls("s0", "read", "ok")).isEqualTo(20_000);
  }
}
