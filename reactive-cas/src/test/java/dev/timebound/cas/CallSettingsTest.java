package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.test.FaultProxy;
import io.grpc.Metadata;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What a ring's settings make of its calls. */
class CallSettingsTest {
  @RegisterExtension final Rings rings = new Rings();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    return rings.of(shards, settings);
  }

  @Nested
  class Headers {
    private final Metadata.Key<String> key =
        Metadata.Key.of("x-build", Metadata.ASCII_STRING_MARSHALLER);

    private Metadata with(String value) {
      Metadata headers = new Metadata();
      headers.put(key, value);
      return headers;
    }

    @Test
    @DisplayName("CAS-1 every call carries the headers")
    void fixed() {
      TestRing t = ring(1, settings -> settings.headers(with("b1")));
      Digest digest = t.put(0, 0);
      t.readsRight(digest);
      t.ring.findMissing(Set.of(digest)).block(LONG);

      assertThat(t.server(0).calls())
          .hasSize(2)
          .allMatch(call -> "b1".equals(call.header("x-build")));
    }

    @Test
    @DisplayName("CAS-1 headers may be made for each call from its Context")
    void fromContext() {
      TestRing t =
          ring(1, settings -> settings.headers(c -> with(c.hasKey("id") ? c.get("id") : "none")));
      Digest digest = t.put(0, 0);
      t.ring.readAll(digest).contextWrite(c -> c.put("id", "mine")).block(LONG);
      t.readsRight(digest);

      assertThat(t.server(0).calls())
          .extracting(call -> call.header("x-build"))
          .containsExactly("mine", "none");
    }
  }

  @Nested
  class Naming {
    @Test
    @DisplayName("CAS-30 the instance's name is the shard's own")
    void instance() {
      try (ScriptedCas server = ScriptedCas.builder().instanceName("main/a").start();
          CasRing ring =
              CasRing.builder(
                      new CasConfig(
                          List.of(
                              new CasConfig.Shard(
                                  "s0",
                                  1,
                                  List.of(CasConfig.Endpoint.parse(server.hostAndPort())),
                                  "main/a"))))
                  .build()) {
        Digest digest = server.put("content");

        assertThat(TestRing.text(ring.readAll(digest)).block(LONG)).isEqualTo("content");
        assertThat(ring.findMissingStrict(Set.of(digest)).block(LONG)).isEmpty();
      }
    }
  }

  @Nested
  class KeepAlive {
    @Test
    @DisplayName("CAS-5 a silent connection is sent a PING while a call is open, and else none")
    void onlyWithCalls() {
      try (ScriptedCas server = ScriptedCas.start();
          FaultProxy busy = FaultProxy.to("127.0.0.1", server.port());
          FaultProxy quiet = FaultProxy.to("127.0.0.1", server.port());
          CasRing withCall = to(busy);
          CasRing without = to(quiet)) {
        Digest digest = server.put("content");
        withCall.readAll(digest).block(LONG);
        without.readAll(digest).block(LONG);
        server.reads().next(CasScript.silence());
        withCall.read(digest).subscribe(piece -> {}, late -> {});
        server.reads().awaitCall(3);
        Patience.rest(); // what the connections say of themselves
        long sent = busy.bytesToServer();
        long idle = quiet.bytesToServer();

        until("a PING is sent", () -> busy.bytesToServer() > sent);
        Patience.rest();

        assertThat(quiet.bytesToServer()).isEqualTo(idle);
      }
    }

    private CasRing to(FaultProxy proxy) {
      return CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s0", proxy.hostAndPort()))))
          .keepAliveTime(Duration.ofSeconds(10))
          .build();
    }
  }
}
