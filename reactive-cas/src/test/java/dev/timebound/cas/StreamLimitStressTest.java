package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Many more calls than streams, which end in every way, on connections that break. */
class StreamLimitStressTest {
  private static final int CALLS = 600;
  private static final int STREAMS = 3;

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  @DisplayName("CAS-2c whatever happens, every stream is given back, and calls go on")
  void anything(long seed) {
    Random random = new Random(seed);
    AtomicInteger right = new AtomicInteger();
    try (ScriptedCas server = ScriptedCas.builder().maxStreams(STREAMS).start()) {
      CasConfig config = new CasConfig(List.of(CasConfig.Shard.of("s0", server.hostAndPort())));
      try (CasRing ring =
          CasRing.builder(config)
              .connectionsPerEndpoint(2)
              .cooldown(Duration.ofMillis(50))
              .rpcTimeout(Duration.ofSeconds(1))
              .gapTimeout(Duration.ofMillis(200))
              .connectTimeout(Duration.ofMillis(500))
              .build()) {
        List<Digest> digests = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
          byte[] content = new byte[20_000];
          random.nextBytes(content);
          digests.add(server.put(content));
        }
        server.reads().answer(call -> anyScript());

        Flux.range(0, CALLS)
            .flatMap(
                i ->
                    call(ring, digests.get(random.nextInt(digests.size())), right)
                        .subscribeOn(Schedulers.boundedElastic()),
                40)
            .blockLast(Duration.ofSeconds(120));

        server.reads().heal();
        ShardConnection shard = ring.shards().all().get(0).connection();
        until("no claim is open", () -> ring.health().openClaims() == 0);
        until("no call is open", () -> ring.openCalls() == 0);
        until("every stream is given back", () -> shard.streams() == 0);
        // the limits are short, and connections that broke come back one by one
        until(
            "all are read again",
            () ->
                end(Flux.fromIterable(digests).flatMap(ring::readAll, digests.size())).join()
                    == null);
        until("again", () -> shard.streams() == 0);
      }
      server.awaitOpenConnections(0);
    }
    assertThat(right).hasPositiveValue();
  }

  private static Mono<Void> call(CasRing ring, Digest digest, AtomicInteger right) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    Duration some = Duration.ofMillis(1 + random.nextInt(100));
    Mono<?> call =
        switch (random.nextInt(6)) {
          case 0 -> ring.read(digest).take(1).then();
          case 1 -> ring.read(digest).delayElements(Duration.ofMillis(5)).limitRate(1).then();
          case 2 -> Mono.from(ring.readAll(digest).transform(Deadlines.within(some)));
          case 3 -> ring.findMissing(Set.of(digest)).timeout(some, Mono.empty());
          case 4 -> ring.write(new byte[] {(byte) random.nextInt()}).timeout(some, Mono.empty());
          default -> ring.readAll(digest);
        };
    return call.doOnSuccess(done -> right.incrementAndGet())
        .onErrorResume(StatusRuntimeException.class, expected -> Mono.empty())
        .onErrorResume(DeadlineExceededException.class, expected -> Mono.empty())
        .then();
  }

  private static CasScript anyScript() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    CasScript correct = CasScript.correct().chunkSize(2_000 + random.nextInt(8_000));
    return switch (random.nextInt(40)) {
      case 0 -> CasScript.silence();
      case 1 -> correct.stopAfter(1, CasEnd.closeConnection());
      case 2 -> correct.stopAfter(1, CasEnd.reset(2));
      case 3 -> correct.goAwayAfter(1);
      case 4 -> correct.stopAfter(0, CasEnd.goAway(0));
      default -> correct;
    };
  }
}
