package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Many reads at once, of servers that do anything, by callers that leave at any moment. */
class ReadStressTest {
  private static final int READS = 600;

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  @DisplayName(
      "CAS-22 CAS-30 CAS-33 whatever happens: right bytes or an error, and nothing is left")
  void anything(long seed) {
    Random random = new Random(seed);
    AtomicInteger right = new AtomicInteger();
    try (TestRing t =
        TestRing.of(
            3,
            settings ->
                settings
                    .scheduler(Schedulers.parallel())
                    .cooldown(Duration.ofMillis(50))
                    .rpcTimeout(Duration.ofMillis(150))
                    .gapTimeout(Duration.ofMillis(100))
                    .connectTimeout(Duration.ofMillis(500))
                    .resumeMidStream(seed % 2 == 0))) {
      List<Digest> digests = new ArrayList<>();
      for (int i = 0; i < 12; i++) {
        digests.add(t.put(t.contentOf(i % 3, 5_000), i % 3, (i + 1) % 3));
      }
      t.servers.forEach(server -> server.reads().answer(call -> anyScript()));

      Flux.range(0, READS)
          .flatMap(i -> read(t, digests.get(random.nextInt(digests.size())), right), 24)
          .blockLast(Duration.ofSeconds(60));

      t.servers.forEach(server -> server.reads().heal());
      for (Digest digest : digests) {
        // the limits are short, and connections that broke come back one by one
        until("it is read again", () -> end(t.ring.readAll(digest)).join() == null);
      }
    }
    assertThat(right).hasPositiveValue();
  }

  private static Mono<Void> read(TestRing t, Digest digest, AtomicInteger right) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    Flux<ByteBuffer> read = t.ring.read(digest);
    Mono<List<ByteBuffer>> whole =
        switch (random.nextInt(4)) {
          case 0 -> read.take(1 + random.nextInt(3)).then(Mono.empty());
          case 1 -> read.limitRate(1).collectList();
          case 2 ->
              Flux.from(
                      read.transform(Deadlines.within(Duration.ofMillis(1 + random.nextInt(100)))))
                  .collectList();
          default -> read.collectList();
        };
    return whole
        .doOnNext(
            pieces -> {
              assertThat(Digest.of(TestRing.joined(pieces))).isEqualTo(digest);
              right.incrementAndGet();
            })
        .onErrorResume(StatusRuntimeException.class, expected -> Mono.empty())
        .onErrorResume(DeadlineExceededException.class, expected -> Mono.empty())
        .then();
  }

  private static CasScript anyScript() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    CasScript some = CasScript.correct().chunkSize(500 + random.nextInt(2_000));
    int pieces = random.nextInt(4);
    return switch (random.nextInt(12)) {
      case 0 -> CasScript.silence();
      case 1 -> CasScript.status(Status.UNAVAILABLE);
      case 2 -> some.stopAfter(pieces, CasEnd.silence());
      case 3 -> some.stopAfter(pieces, CasEnd.reset(2));
      case 4 -> some.stopAfter(pieces, CasEnd.closeConnection());
      case 5 -> some.wrongByteAt(random.nextInt(5_000));
      case 6 -> some.tooLong(1 + random.nextInt(3_000));
      case 7 -> some.tooShort(1 + random.nextInt(3_000));
      case 8 -> some.keepAlives(2);
      case 9 -> some.goAwayAfter(pieces);
      default -> some;
    };
  }
}
