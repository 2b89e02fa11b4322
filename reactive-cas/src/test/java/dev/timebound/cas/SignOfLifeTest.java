package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.grpc.DeliveryExecutor;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.util.context.Context;

@DisplayName("CAS-3 empty messages between two pieces, on a clock that the test moves")
class SignOfLifeTest {
  private static final Duration ALMOST = Duration.ofSeconds(9);

  private final TestRing ring = TestRing.of(1, settings -> settings.retries(0));
  private final DeliveryExecutor delivery = DeliveryExecutor.create("sign-of-life", null);
  private final byte[] content = ring.contentOf(0, 200);
  private final Digest digest = ring.put(content, 0);

  private final Taker reader = new Taker();
  private final ReadAttempt attempt = new ReadAttempt(read(), reader);

  private BlobRead read() {
    ShardCalls calls = ring.ring.calls();
    RingShards shards = ring.ring.shards();
    Reads reads =
        new Reads(
            shards,
            calls,
            delivery,
            CasMeters.of(null, "cas"),
            CasObservations.of(null, "cas"),
            new Compression(false, new ShardCapabilities(shards, calls), () -> 0));
    return new BlobRead(reads, digest, Context.empty());
  }

  @AfterEach
  void close() {
    attempt.cancel();
    delivery.close();
    ring.close();
  }

  private void gets(int from, int to) {
    attempt.onNext(
        ReadResponse.newBuilder()
            .setData(UnsafeByteOperations.unsafeWrap(Arrays.copyOfRange(content, from, to)))
            .build());
  }

  private void getsNothing() {
    attempt.onNext(ReadResponse.getDefaultInstance());
  }

  @Test
  @DisplayName("CAS-3 each begins the gap anew; without them it passes")
  void betweenPieces() {
    // its server says nothing: what comes is what the test has it get
    ring.server(0).reads().always(CasScript.silence());
    reader.onSubscribe(attempt);
    reader.request(10);
    ring.server(0).reads().awaitCall(1);
    gets(0, 100);
    for (int i = 0; i < 3; i++) {
      ring.pass(ALMOST);
      getsNothing();
    }
    ring.pass(ALMOST);
    Patience.rest(); // for an end that must not come
    assertThat(reader.end).isNotDone();

    ring.passUntilDone(reader.end, Duration.ofSeconds(1));
    assertThat(reader.end.join())
        .hasMessageContaining("s0: nothing received for PT10S while it was waited for");
  }
}
