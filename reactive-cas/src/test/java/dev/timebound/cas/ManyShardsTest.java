package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.HeldPort;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.deadline.Deadlines;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Many keys on rings some of whose shards are out. */
class ManyShardsTest {
  private final List<ScriptedCas> servers = new ArrayList<>();
  private final List<HeldPort> ports = new ArrayList<>();

  @AfterEach
  void close() {
    servers.forEach(ScriptedCas::close);
    ports.forEach(HeldPort::close);
  }

  private CasConfig servers(int count) {
    List<CasConfig.Shard> shards = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      ScriptedCas server = ScriptedCas.start();
      servers.add(server);
      shards.add(CasConfig.Shard.of("s" + i, server.hostAndPort()));
    }
    return new CasConfig(shards);
  }

  private CasConfig closedPorts(int count) {
    List<CasConfig.Shard> shards = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      HeldPort port = HeldPort.free();
      ports.add(port);
      shards.add(CasConfig.Shard.of("s" + i, "127.0.0.1:" + port.number()));
    }
    return new CasConfig(shards);
  }

  private static ShardSelector selector(CasConfig config, boolean rendezvous) {
    return rendezvous ? config.rendezvous() : config.weighted();
  }

  private static Set<Digest> digests(int count) {
    Set<Digest> digests = new HashSet<>();
    IntStream.range(0, count)
        .forEach(i -> digests.add(Digest.of(("blob " + i).getBytes(StandardCharsets.UTF_8))));
    return digests;
  }

  private static void nothingIsLeft(CasRing ring) {
    until("no claim is open", () -> ring.health().openClaims() == 0);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @DisplayName("CAS-25 keys of a shard that is out are asked for together, however they spread")
  void together(boolean rendezvous) {
    CasConfig config = servers(6);
    try (CasRing ring = CasRing.builder(config).selector(selector(config, rendezvous)).build()) {
      Set<Digest> digests = digests(3000);
      ring.findMissing(digests).block(LONG);
      servers.get(0).kill();
      until("it is out", () -> !find(ring, digests).unknown().isEmpty());
      int before = calls();
      BlobPresence found = find(ring, digests);
      assertThat(found.unknown()).as("the home's own keys").hasSizeBetween(200, 1000);
      assertThat(found.missing()).hasSize(3000 - found.unknown().size());
      // 5 homes, and some for each of 5 rounds; one request for each key and round were thousands
      assertThat(calls() - before).isLessThan(150);
      nothingIsLeft(ring);
    }
  }

  private static BlobPresence find(CasRing ring, Set<Digest> digests) {
    return Objects.requireNonNull(ring.findMissing(digests).block(LONG));
  }

  private int calls() {
    return servers.stream().mapToInt(server -> server.findMissing().calls().size()).sum();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @DisplayName("CAS-25 a hundred shards that are all out: every key is told of, nothing nests")
  void allOut(boolean rendezvous) {
    CasConfig config = closedPorts(100);
    try (CasRing ring =
        CasRing.builder(config).selector(selector(config, rendezvous)).retries(0).build()) {
      Set<Digest> digests = digests(100);
      assertThat(find(ring, digests).unknown()).hasSize(100);
      List<ReadManyResult> read = ring.readMany(digests).collectList().block(LONG);
      assertThat(read).hasSize(100).allMatch(result -> result.failure() != null);
      nothingIsLeft(ring);
    }
  }

  @Test
  @DisplayName("CAS-20a checks given up at any moment leave no claim open")
  void givenUp() {
    CasConfig config = servers(3);
    try (CasRing ring = CasRing.builder(config).retries(1).build()) {
      Set<Digest> digests = digests(60);
      ring.findMissing(digests).block(LONG);
      servers.get(0).kill();
      Random random = new Random(11);
      for (int i = 0; i < 500; i++) {
        givenUp(ring.findMissing(digests).then(), random);
        givenUp(ring.readMany(digests).then(), random);
      }
      nothingIsLeft(ring);
    }
  }

  @Test
  @DisplayName("CAS-20a checks whose deadline passes as they begin leave no claim open")
  void late() {
    try (CasRing ring = CasRing.builder(servers(3)).build()) {
      Set<Digest> digests = digests(1);
      ring.findMissing(digests).block(LONG);
      Random random = new Random(13);
      Flux.range(0, 5000)
          .flatMap(
              i -> {
                Duration time = Duration.ofNanos(200_000 + random.nextInt(8_000_000));
                Mono<Void> call =
                    i % 2 == 0 ? ring.findMissing(digests).then() : ring.readMany(digests).then();
                return call.transform(Deadlines.within(time)).onErrorComplete();
              },
              16)
          .blockLast(Duration.ofSeconds(120)); // for the number of them, on a busy machine
      nothingIsLeft(ring);
    }
  }

  private static void givenUp(Mono<Void> call, Random random) {
    Disposable begun = call.onErrorComplete().subscribe();
    LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(random.nextInt(1500)));
    begun.dispose();
  }
}
