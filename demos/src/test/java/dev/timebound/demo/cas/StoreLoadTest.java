package dev.timebound.demo.cas;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.CasConfig;
import dev.timebound.cas.Digest;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

class StoreLoadTest {
  private static final Blobs BLOBS =
      new Blobs(
          new CasConfig(
                  List.of(
                      CasConfig.Shard.of("a", "localhost:1"),
                      CasConfig.Shard.of("b", "localhost:2"),
                      CasConfig.Shard.of("c", "localhost:3"),
                      CasConfig.Shard.of("d", "localhost:4")))
              .weighted(),
          7);

  /** Small blobs only: a large one takes a while to be made anew. */
  private static final Predicate<Blob> SMALL = blob -> blob.size() <= Blobs.SMALL;

  private final LoadPlan plan = new LoadPlan(300, 60, 60, Duration.ofMillis(10), 3);
  private final Account account = new Account(new Frost(BLOBS.toFreeze()));

  private Figures after(StoreClient client, Predicate<Account> enough) throws InterruptedException {
    account.measure();
    StoreLoad load = new StoreLoad(client, BLOBS, plan, account);
    load.start();
    for (int i = 0; i < 2_000 && !enough.test(account); i++) {
      Thread.sleep(10);
    }
    return load.finish();
  }

  /** Large blobs are not made anew. */
  private abstract static class Faulty extends MemoryClient {
    Faulty() {
      super(BLOBS);
    }

    @Override
    public Flux<ByteBuffer> read(Digest digest, Duration time) {
      return SMALL.test(blob(digest)) ? fault(blob(digest)) : Flux.never();
    }

    abstract Flux<ByteBuffer> fault(Blob blob);
  }

  @Test
  @DisplayName("knows right bytes from wrong ones, and a blob said to be missing that is there")
  void faults() throws InterruptedException {
    Faulty client =
        new Faulty() {
          private int reads;

          @Override
          synchronized Flux<ByteBuffer> fault(Blob blob) {
            byte[] content = blob.content();
            switch (++reads % 3) {
              case 0 -> {
                content[0] ^= 1;
                return Flux.just(ByteBuffer.wrap(content));
              }
              case 1 -> {
                return Flux.error(Status.NOT_FOUND.asRuntimeException());
              }
              default -> {
                return Flux.just(ByteBuffer.wrap(content));
              }
            }
          }
        };
    Figures figures = after(client, a -> a.figures().wrong() > 5 && a.figures().falseMissing() > 5);

    assertThat(figures.wrong()).isPositive();
    assertThat(figures.falseMissing()).isPositive();
    assertThat(figures.errors()).containsOnlyKeys("NOT_FOUND");
    assertThat(figures.failedMirroredReads()).isPositive();
    assertThat(figures.calls()).isGreaterThan(figures.mirroredReads());
  }

  @Test
  @DisplayName("gives up what is not answered 5 s after its deadline, and only that")
  void unanswered() throws InterruptedException {
    Faulty client =
        new Faulty() {
          @Override
          Flux<ByteBuffer> fault(Blob blob) {
            return Flux.never();
          }
        };
    Figures figures = after(client, a -> a.figures().unanswered() > 0);

    assertThat(figures.unanswered()).isPositive();
    assertThat(figures.slowestMillis()).isGreaterThan(LoadPlan.GRACE.toMillis());
    assertThat(figures.errors()).isEmpty();
  }

  @Test
  @DisplayName("tells false answers of a check from keys that it does not know")
  void checks() throws InterruptedException {
    Faulty client =
        new Faulty() {
          @Override
          Flux<ByteBuffer> fault(Blob blob) {
            return Flux.just(ByteBuffer.wrap(blob.content()));
          }

          @Override
          public Mono<Map<Digest, Presence>> check(Set<Digest> digests, Duration time) {
            return super.check(digests, time)
                .map(
                    answer -> {
                      Map<Digest, Presence> turned = new HashMap<>();
                      answer.forEach(
                          (digest, said) ->
                              turned.put(
                                  digest,
                                  said == Presence.PRESENT ? Presence.MISSING : Presence.UNKNOWN));
                      return turned;
                    });
          }
        };
    Figures figures = after(client, a -> a.figures().unknownKeys() > 0);

    assertThat(figures.falseMissing()).isPositive().isEqualTo(figures.unknownKeys());
    assertThat(figures.wrong()).isZero();
  }
}
