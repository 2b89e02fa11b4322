package dev.timebound.cas;

import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.timebound.health.MemberStatus;
import io.grpc.Metadata;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;

/** The bearer token that calls carry. */
class TokenTest {
  private final List<TestRing> rings = new ArrayList<>();

  private TestRing ring(int shards, UnaryOperator<CasRingBuilder> settings) {
    TestRing made = TestRing.of(shards, settings);
    rings.add(made);
    return made;
  }

  @AfterEach
  void close() {
    rings.forEach(TestRing::close);
  }

  private static Metadata authorization(String value) {
    Metadata headers = new Metadata();
    headers.put(ShardCalls.AUTHORIZATION, value);
    return headers;
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  @DisplayName("CAS-20a a source that dies by an Error has failed, and the next call asks it again")
  void sourceDies(boolean linkage) {
    AtomicInteger asked = new AtomicInteger();
    TestRing t =
        ring(
            1,
            settings ->
                settings.tokenSource(
                    Mono.fromSupplier(
                        () -> {
                          if (asked.getAndIncrement() == 0) {
                            throw linkage
                                ? new NoClassDefFoundError("some/Library")
                                : new StackOverflowError("too deep");
                          }
                          return "one";
                        })));
    Digest digest = t.put(0, 0);
    assertThat(failure(t.ring.read(digest)))
        .hasMessageContaining("UNAUTHENTICATED: no token: java.lang." + (linkage ? "NoC" : "Sta"))
        .hasRootCauseInstanceOf(Error.class);
    t.readsRight(digest);
    assertThat(asked).hasValue(2);
    assertThat(t.status(0)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-4 an own authorization beside a source of tokens is refused by build")
  void contradiction() {
    CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:1")));
    CasRingBuilder both =
        CasRing.builder(config).headers(authorization("Basic abc")).tokenSource(Mono.just("one"));
    assertThatIllegalArgumentException()
        .isThrownBy(both::build)
        .withMessage("headers: authorization (expected: none where tokenSource is set)");
    both.headers(new Metadata()).build().close();
    both.headers(authorization("Basic abc")).headers(context -> new Metadata()).build().close();
  }

  @Test
  @DisplayName("CAS-4 a token takes the place of an authorization that is made for each call")
  void tokenWins() {
    TestRing t =
        ring(
            1,
            settings ->
                settings
                    .headers(context -> authorization("Basic abc"))
                    .tokenSource(Mono.just("one")));
    t.readsRight(t.put(0, 0));
    assertThat(t.server(0).reads().awaitCall(1).headers().getAll(ShardCalls.AUTHORIZATION))
        .containsExactly("Bearer one");
  }

  @Test
  @DisplayName("CAS-4 an own authorization alone travels")
  void own() {
    TestRing t = ring(1, settings -> settings.headers(authorization("Basic abc")));
    t.readsRight(t.put(0, 0));
    assertThat(t.server(0).reads().awaitCall(1).header("authorization")).isEqualTo("Basic abc");
  }
}
