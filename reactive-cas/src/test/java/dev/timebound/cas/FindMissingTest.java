package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.BlobPresence.State;
import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.MemberStatus;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Existence checks of many blobs. */
class FindMissingTest {
  private static final CasScript DEAD = CasScript.status(Status.UNAVAILABLE);

  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  private TestRing ring() {
    return ring(3, settings -> settings.retries(0));
  }

  private static BlobPresence ask(TestRing t, Digest... digests) {
    BlobPresence found = t.ring.findMissing(Set.of(digests)).block(LONG);
    assertThat(found).isNotNull();
    return found;
  }

  private static int asked(TestRing t, int server) {
    return t.server(server).findMissing().calls().size();
  }

  @Nested
  class Healthy {
    @Test
    @DisplayName("CAS-25 each shard is asked for its own keys, once")
    void ownKeys() {
      TestRing t = ring();
      Digest a = t.put(0, 0);
      Digest b = t.put(0);
      Digest c = t.put(1, 1);
      Digest d = t.put(1, 0, 2); // not where it belongs

      BlobPresence found = ask(t, a, b, c, d);

      assertThat(found.present()).containsExactlyInAnyOrder(a, c);
      assertThat(found.missing()).containsExactlyInAnyOrder(b, d);
      assertThat(found.unknown()).isEmpty();
      assertThat(found.of(a)).isEqualTo(State.PRESENT);
      assertThat(found.of(d)).isEqualTo(State.MISSING);
      assertThatThrownBy(() -> found.of(Digest.of(new byte[9])))
          .isInstanceOf(IllegalArgumentException.class);
      assertThat(t.server(0).findMissing().awaitCall(1).digests()).containsExactlyInAnyOrder(a, b);
      assertThat(t.server(1).findMissing().awaitCall(1).digests()).containsExactlyInAnyOrder(c, d);
      assertThat(List.of(asked(t, 0), asked(t, 1), asked(t, 2))).containsExactly(1, 1, 0);
    }

    @Test
    @DisplayName("CAS-30 the empty blob is there, and nobody is asked")
    void empty() {
      TestRing t = ring();
      Digest empty = Digest.empty(DigestFunction.SHA256);

      assertThat(ask(t, empty).present()).containsExactly(empty);
      assertThat(ask(t).present()).isEmpty();
      assertThat(t.servers).allMatch(server -> server.calls().isEmpty());
    }

    @Test
    @DisplayName("CAS-25 an answer about something else makes nothing present")
    void wrongAnswer() {
      TestRing t = ring();
      Digest asked = t.put(0, 0);
      RemoteExecution.Digest other = WireDigests.of(Digest.of(new byte[7]));
      for (RemoteExecution.Digest named :
          List.of(other, RemoteExecution.Digest.newBuilder().setHash("ABC").build())) {
        t.server(0)
            .findMissing()
            .next(
                CasScript.correct()
                    .reply(
                        FindMissingBlobsResponse.newBuilder()
                            .addMissingBlobDigests(named)
                            .build()));
        assertThat(ask(t, asked).of(asked)).isEqualTo(State.UNKNOWN);
      }
    }

    @Test
    @DisplayName("CAS-4 what is transient is asked again; what is not makes its keys unknown")
    void retries() {
      TestRing t = ring(3, settings -> settings.retries(3));
      Digest a = t.put(0, 0);
      t.server(0).findMissing().next(CasScript.status(Status.RESOURCE_EXHAUSTED));
      assertThat(ask(t, a).of(a)).isEqualTo(State.PRESENT);
      assertThat(asked(t, 0)).isEqualTo(2);

      t.server(0).findMissing().next(CasScript.status(Status.PERMISSION_DENIED));
      assertThat(ask(t, a).unknown().get(a)).hasMessageContaining("PERMISSION_DENIED");
      assertThat(asked(t, 0)).isEqualTo(3);
    }
  }

  @Nested
  class OneOut {
    @Test
    @DisplayName(
        "CAS-25 one dead shard does not fail the rest: its keys are asked of the next ones")
    void deadShard() {
      TestRing t = ring();
      Digest mirrored = t.put(0, 0, 2);
      Digest alone = t.put(0, 0);
      Digest other = t.put(1, 1);
      Digest gone = t.put(1);
      t.kill(0);

      BlobPresence found = ask(t, mirrored, alone, other, gone);

      assertThat(found.present()).containsExactlyInAnyOrder(mirrored, other);
      assertThat(found.missing()).containsExactly(gone);
      assertThat(found.unknown()).containsOnlyKeys(alone);
      assertThat(found.unknown().get(alone))
          .hasMessageContaining("UNAVAILABLE")
          .hasMessageContaining("s0");
      // shard 1 first, and shard 2 for what it has not
      assertThat(t.server(2).findMissing().awaitCall(1).digests())
          .containsExactlyInAnyOrder(mirrored, alone);
    }

    @Test
    @DisplayName("CAS-25 the strict form is an error that names the unknown keys")
    void strict() {
      TestRing t = ring();
      Digest missing = t.put(1);
      assertThat(t.ring.findMissingStrict(Set.of(missing)).block(LONG)).containsExactly(missing);
      t.server(0).findMissing().always(DEAD);
      Set<Digest> unknown = new HashSet<>();
      for (int i = 0; i < 5; i++) {
        unknown.add(t.put(0));
      }
      Set<Digest> all = new HashSet<>(unknown);
      all.add(missing);

      Throwable failure = failure(t.ring.findMissingStrict(all));

      assertThat(failure)
          .isInstanceOfSatisfying(
              UnknownBlobsException.class, e -> assertThat(e.unknown().keySet()).isEqualTo(unknown))
          .hasMessageContaining("5 of 6 blobs unknown")
          .hasMessageContaining("s0");
      assertThat(unknown).anyMatch(d -> failure.toString().contains(d.toString()));
    }

    @Test
    @DisplayName("CAS-23 a suspect home is asked last, and then its word is final")
    void suspect() {
      TestRing t = ring();
      t.server(0).reads().always(DEAD);
      t.makeSuspect(0);
      t.server(0).reads().heal();
      Digest here = t.put(0, 0);
      Digest nowhere = t.put(0);
      Digest mirrored = t.put(0, 1);

      BlobPresence found = ask(t, here, nowhere, mirrored);

      assertThat(found.present()).containsExactlyInAnyOrder(here, mirrored);
      assertThat(found.missing()).containsExactly(nowhere);
      assertThat(t.server(0).findMissing().awaitCall(1).digests())
          .containsExactlyInAnyOrder(here, nowhere);
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-20 CAS-27 after the cooldown the check itself is the trial")
    void trial() {
      TestRing t = ring();
      t.server(0).findMissing().always(DEAD);
      for (int i = 0; i < 3; i++) {
        assertThat(ask(t, t.put(0)).unknown()).hasSize(1);
      }
      assertThat(t.status(0)).isEqualTo(MemberStatus.QUARANTINED);
      t.server(0).findMissing().heal();
      t.pass(Duration.ofSeconds(5));
      int others = asked(t, 1);
      Digest digest = t.put(0, 0);

      assertThat(ask(t, digest).of(digest)).isEqualTo(State.PRESENT);
      assertThat(asked(t, 1)).isEqualTo(others);
      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-24 with every shard out each home is asked all the same")
    void allOut() {
      TestRing t = ring();
      t.servers.forEach(server -> server.reads().always(DEAD));
      for (int i = 0; i < 3; i++) {
        t.makeSuspect(i);
      }
      Digest a = t.put(0, 0);
      Digest b = t.put(1, 1);

      assertThat(ask(t, a, b).present()).containsExactlyInAnyOrder(a, b);
      assertThat(List.of(asked(t, 0), asked(t, 1), asked(t, 2))).containsExactly(1, 1, 0);
    }

    @Test
    @DisplayName("CAS-25 under rendezvous hashing each key has next shards of its own")
    void rendezvous() {
      TestRing t =
          ring(
              3,
              settings ->
                  settings
                      .retries(0)
                      .selector(ShardSelector.rendezvous(List.of("s0", "s1", "s2"), 1, 1, 1)));
      List<Digest> keys = new ArrayList<>();
      ShardSelector selector = ShardSelector.rendezvous(List.of("s0", "s1", "s2"), 1, 1, 1);
      for (int i = 0; keys.size() < 20; i++) {
        byte[] content = ("blob " + i).getBytes(StandardCharsets.UTF_8);
        int[] order = selector.candidates(Digest.of(content));
        if (order[0] == 0) {
          keys.add(t.put(content, order[1]));
        }
      }
      t.kill(0);

      BlobPresence found = t.ring.findMissing(Set.copyOf(keys)).block(LONG);

      assertThat(found).isNotNull();
      assertThat(found.present()).containsExactlyInAnyOrderElementsOf(keys);
      assertThat(asked(t, 1)).isEqualTo(1);
      assertThat(asked(t, 2)).isEqualTo(1);
    }
  }

  @Nested
  class Limits {
    @Test
    @DisplayName("CAS-25 180,000 digests work in one call")
    void many() {
      TestRing t = ring(1, settings -> settings);
      Set<Digest> digests = new HashSet<>();
      for (int i = 0; i < 180_000; i++) {
        digests.add(
            Digest.of(
                String.format("%08x%056x", i * 0x9E3779B9, i),
                Long.MAX_VALUE - i,
                DigestFunction.SHA256));
      }

      BlobPresence found = t.ring.findMissing(digests).block(LONG);

      assertThat(found).isNotNull();
      assertThat(found.missing()).hasSize(180_000);
      assertThat(t.server(0).findMissing().calls())
          .hasSizeGreaterThan(1)
          .allMatch(call -> call.requestBytes() <= 2 << 20);
    }

    @Test
    @DisplayName("CAS-3 rpcTimeout bounds each call, without a deadline too")
    void rpcTimeout() {
      TestRing t = ring();
      Digest digest = t.put(0, 1);
      t.server(0).findMissing().next(CasScript.silence());
      CompletableFuture<@Nullable Throwable> end =
          end(
              t.ring
                  .findMissing(Set.of(digest))
                  .doOnNext(found -> assertThat(found.of(digest)).isEqualTo(State.PRESENT)));
      CasCall call = t.server(0).findMissing().awaitCall(1);
      t.pass(Duration.ofMillis(29_999));
      assertThat(end).isNotDone();
      t.pass(Duration.ofMillis(1));

      assertThat(end.join()).isNull();
      assertThat(call.awaitEnd()).isEqualTo(CasCall.End.RESET_BY_CLIENT);
    }

    @Test
    @DisplayName("CAS-20a the caller's deadline ends it, and is no shard's failure")
    void deadline() {
      TestRing t = ring(1, settings -> settings);
      t.server(0).findMissing().always(CasScript.silence());
      for (int i = 0; i < 4; i++) {
        Throwable failure =
            failure(
                t.ring
                    .findMissing(Set.of(t.put(0)))
                    .transform(Deadlines.within(Duration.ofMillis(20))));
        assertThat(failure).isInstanceOf(DeadlineExceededException.class);
      }

      assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("CAS-25 unknown is told with the last error where the only shard is dead")
    void onlyShard() {
      TestRing t = ring(1, settings -> settings.retries(0));
      Digest digest = t.put(0, 0);
      t.server(0).findMissing().always(DEAD);

      assertThat(ask(t, digest).unknown().get(digest))
          .isInstanceOfSatisfying(
              StatusRuntimeException.class,
              e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE));
    }
  }
}
