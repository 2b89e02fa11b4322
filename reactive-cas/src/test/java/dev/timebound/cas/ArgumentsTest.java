package dev.timebound.cas;

import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.timebound.health.MemberStatus;
import io.grpc.Metadata;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import org.reactivestreams.Publisher;
import reactor.util.context.ContextView;

/** What is no argument is refused at the call, by its name. */
@SuppressWarnings("NullAway") // on purpose
class ArgumentsTest {
  private static final CasConfig CONFIG =
      new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:1")));
  private static final Digest DIGEST = Digest.of(new byte[1]);
  private static final Set<Digest> SET = new HashSet<>(Arrays.asList(DIGEST, null));

  static final List<Arguments> NULLS =
      List.of(
          ring("digest", ring -> ring.read(null)),
          ring("digest", ring -> ring.readAll(null)),
          ring("digest", ring -> ring.write(null, new byte[1])),
          ring("digest", ring -> ring.write(null, (Publisher<ByteBuffer>) null)),
          ring("content", ring -> ring.write(DIGEST, (Publisher<ByteBuffer>) null)),
          ring("content", ring -> ring.write(DIGEST, (byte[]) null)),
          ring("content", ring -> ring.write(null)),
          ring("digests", ring -> ring.findMissing(null)),
          ring("digests: null (expected: none in it)", ring -> ring.findMissing(SET)),
          ring("digests", ring -> ring.findMissingStrict(null)),
          ring("digests: null (expected: none in it)", ring -> ring.findMissingStrict(SET)),
          ring("digests", ring -> ring.readMany(null)),
          ring("digests: null (expected: none in it)", ring -> ring.readMany(SET)),
          ring("blobs", ring -> ring.writeMany((Map<Digest, byte[]>) null)),
          ring("blobs", ring -> ring.writeMany((Collection<byte[]>) null)),
          ring(
              "blobs: null (expected: none in it)",
              ring -> ring.writeMany(Collections.singletonMap(DIGEST, null))),
          ring(
              "blobs: null (expected: none in it)",
              ring -> ring.writeMany(Collections.singletonMap(null, new byte[1]))),
          ring(
              "blobs: null (expected: none in it)",
              ring -> ring.writeMany(Collections.<byte[]>singletonList(null))),
          ring("shard", ring -> ring.capabilities(null)),
          builder("headers", builder -> builder.headers((Metadata) null)),
          builder("headers", builder -> builder.headers((Function<ContextView, Metadata>) null)),
          builder("trusted", builder -> builder.tls(null)),
          builder("trusted", builder -> builder.tls(null, null, null)),
          builder("tokenSource", builder -> builder.tokenSource(null)),
          builder("credentials", builder -> builder.credentials(null)));

  private static Arguments ring(String message, Consumer<CasRing> call) {
    return Arguments.of(
        message,
        (Runnable)
            () -> {
              try (CasRing ring = CasRing.builder(CONFIG).build()) {
                call.accept(ring);
              }
            });
  }

  private static Arguments builder(String message, Consumer<CasRingBuilder> call) {
    return Arguments.of(message, (Runnable) () -> call.accept(CasRing.builder(CONFIG)));
  }

  @ParameterizedTest
  @FieldSource("NULLS")
  @DisplayName("CAS-1 a null is refused at the call, by the argument's name")
  void nulls(String message, Runnable call) {
    assertThatNullPointerException().isThrownBy(call::run).withMessage(message);
  }

  @Test
  @DisplayName("CAS-20a a function of headers that gives null fails the call, and blames no shard")
  void nullHeaders() {
    try (TestRing ring = TestRing.of(1, settings -> settings.headers(context -> null))) {
      Digest digest = ring.put(0, 0);
      for (Publisher<?> call : List.of(ring.ring.read(digest), ring.ring.write(new byte[] {1}))) {
        assertThat(failure(call))
            .isInstanceOf(NullPointerException.class)
            .hasMessage("headers: the function gave null");
      }
      assertThat(ring.server(0).calls()).isEmpty();
      assertThat(ring.status(0)).isEqualTo(MemberStatus.HEALTHY);
    }
  }
}
