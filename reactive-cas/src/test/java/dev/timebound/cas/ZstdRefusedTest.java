package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasRoute;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.test.scheduler.VirtualTimeScheduler;

@DisplayName("CAS-32 a server that tells zstd and does not serve it")
class ZstdRefusedTest {
  private final ScriptedCas server = ScriptedCas.builder().zstd().start();
  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final CasRing ring =
      CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s0", server.hostAndPort()))))
          .scheduler(time)
          .retries(0)
          .build();
  private final byte[] content = content();
  private final Digest digest = Digest.of(content);

  private static byte[] content() {
    byte[] content = new byte[200_000];
    new Random(5).nextBytes(content);
    return content;
  }

  @BeforeEach
  void known() {
    ring.capabilities("s0").block(LONG);
  }

  @AfterEach
  void close() {
    server.awaitOpenCalls(0);
    until("no claim is open", () -> ring.health().openClaims() == 0);
    ring.close();
    server.close();
    time.dispose();
  }

  private static boolean compressed(CasCall call) {
    return call.resourceName().contains("compressed-blobs/");
  }

  private static void refuse(CasRoute route, Status.Code code) {
    Status status = Status.fromCode(code).withDescription("unknown resource");
    route.answer(call -> compressed(call) ? CasScript.status(status) : null);
  }

  private static List<Boolean> compressed(CasRoute route) {
    return route.calls().stream().map(ZstdRefusedTest::compressed).toList();
  }

  private static Status.@Nullable Code code(Throwable failure) {
    return Status.fromThrowable(failure).getCode();
  }

  @ParameterizedTest
  @EnumSource(
      value = Status.Code.class,
      names = {"UNIMPLEMENTED", "INVALID_ARGUMENT", "NOT_FOUND"})
  @DisplayName("CAS-32 a read is asked once more, uncompressed; the next ones are so at once")
  void read(Status.Code refusal) {
    server.put(content);
    refuse(server.reads(), refusal);
    assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);
    assertThat(compressed(server.reads())).containsExactly(true, false);
    assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);
    assertThat(ring.write(digest, content).block(LONG)).isNotNull();
    assertThat(compressed(server.reads())).containsExactly(true, false, false);
    assertThat(compressed(server.writes())).containsExactly(false);
  }

  @ParameterizedTest
  @EnumSource(
      value = Status.Code.class,
      names = {"UNIMPLEMENTED", "INVALID_ARGUMENT", "NOT_FOUND"})
  @DisplayName("CAS-32 an upload begins once more, uncompressed; the next ones do so at once")
  void write(Status.Code refusal) {
    refuse(server.writes(), refusal);
    assertThat(ring.write(content).block(LONG)).isEqualTo(new WriteResult(digest, false));
    assertThat(server.get(digest)).isEqualTo(content);
    assertThat(compressed(server.writes())).containsExactly(true, false);
    byte[] other = content();
    other[0]++;
    ring.write(other).block(LONG);
    ring.readAll(digest).block(LONG);
    assertThat(compressed(server.writes())).containsExactly(true, false, false);
    assertThat(compressed(server.reads())).containsExactly(false);
  }

  @Test
  @DisplayName("CAS-32 content that can be read once goes on from what is held")
  void writeOfContentThatCanBeReadOnce() {
    refuse(server.writes(), Status.Code.UNIMPLEMENTED);
    ring.write(digest, Uploads.once(content, 10_000)).block(LONG);
    assertThat(server.get(digest)).isEqualTo(content);
  }

  @Test
  @DisplayName(
      "CAS-30b CAS-32 of one that has served no zstd yet nothing is missing before it is asked for"
          + " uncompressed, and nothing is learned from it")
  void missing() {
    for (int i = 0; i < 2; i++) {
      assertThat(failure(ring.readAll(digest))).isInstanceOf(BlobNotFoundException.class);
    }
    assertThat(compressed(server.reads())).containsExactly(true, false, true, false);
    server.put(content);
    assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);
    assertThat(compressed(server.reads())).endsWith(true).hasSize(5);
  }

  @Test
  @DisplayName("CAS-30b CAS-32 of one that has served zstd one NOT_FOUND is enough")
  void missingOfOneThatServes() {
    server.put(content);
    ring.readAll(digest).block(LONG);
    server.remove(digest);

    assertThat(failure(ring.readAll(digest))).isInstanceOf(BlobNotFoundException.class);

    assertThat(compressed(server.reads())).containsExactly(true, true);
  }

  @Test
  @DisplayName("CAS-32 one that served zstd and refuses it must serve it again to be believed")
  void believedAgain() {
    server.put(content);
    ring.readAll(digest).block(LONG);
    refuse(server.reads(), Status.Code.UNIMPLEMENTED);
    assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);
    time.advanceTimeBy(Duration.ofMinutes(10));
    refuse(server.reads(), Status.Code.NOT_FOUND);

    assertThat(ring.readAll(digest).block(LONG)).isEqualTo(content);

    assertThat(compressed(server.reads())).containsExactly(true, true, false, true, false);
  }

  @ParameterizedTest
  @EnumSource(
      value = Status.Code.class,
      names = {"PERMISSION_DENIED", "UNAVAILABLE", "DATA_LOSS", "OUT_OF_RANGE"})
  @DisplayName("CAS-32 any other refusal stands")
  void others(Status.Code code) {
    server.put(content);
    refuse(server.reads(), code);
    refuse(server.writes(), code);
    assertThat(code(failure(ring.readAll(digest)))).isEqualTo(code);
    assertThat(code(failure(ring.write(content)))).isEqualTo(code);
    assertThat(compressed(server.reads())).containsExactly(true);
    assertThat(compressed(server.writes())).containsExactly(true);
  }

  @ParameterizedTest
  @EnumSource(
      value = Status.Code.class,
      names = {"UNIMPLEMENTED", "INVALID_ARGUMENT"})
  @DisplayName("CAS-32 one that refuses uncompressed streams too has said its last word")
  void both(Status.Code code) {
    server.put(content);
    server.reads().always(CasScript.status(Status.fromCode(code)));
    server.writes().always(CasScript.status(Status.fromCode(code)));
    assertThat(code(failure(ring.readAll(digest)))).isEqualTo(code);
    assertThat(code(failure(ring.write(content)))).isEqualTo(code);
    assertThat(compressed(server.reads())).containsExactly(true, false);
    assertThat(compressed(server.writes())).containsExactly(true, false);
  }

  @Test
  @DisplayName("CAS-22 a stream that breaks off so in its midst is not begun anew")
  void inMidStream() {
    server.put(content);
    server
        .reads()
        .next(
            CasScript.correct()
                .chunkSize(10_000)
                .stopAfter(15, CasEnd.status(Status.INVALID_ARGUMENT)));
    assertThat(code(failure(ring.readAll(digest)))).isEqualTo(Status.Code.INVALID_ARGUMENT);
    assertThat(server.reads().calls()).hasSize(1);
  }

  @Test
  @DisplayName("CAS-3 both together have the time of one attempt")
  void withinOneLimit() {
    server.put(content);
    CompletableFuture<Void> gate = new CompletableFuture<>();
    server
        .reads()
        .answer(
            call ->
                compressed(call)
                    ? CasScript.status(Status.UNIMPLEMENTED).after(gate)
                    : CasScript.silence());
    CompletableFuture<@Nullable Throwable> end = TestRing.end(ring.readAll(digest));
    server.reads().awaitCall(1);
    time.advanceTimeBy(Duration.ofSeconds(29));
    gate.complete(null);
    server.reads().awaitCall(2);
    time.advanceTimeBy(Duration.ofSeconds(1));
    Throwable late = end.join();
    assertThat(late).hasMessageContaining("nothing received within rpcTimeout, PT30S");
  }

  @Test
  @DisplayName("CAS-32 it is tried again after ten minutes")
  void triedAgain() {
    server.put(content);
    refuse(server.reads(), Status.Code.UNIMPLEMENTED);
    ring.readAll(digest).block(LONG);
    server.reads().heal();
    time.advanceTimeBy(Duration.ofMinutes(9));
    ring.readAll(digest).block(LONG);
    time.advanceTimeBy(Duration.ofMinutes(1));
    ring.readAll(digest).block(LONG);
    assertThat(compressed(server.reads())).containsExactly(true, false, false, true);
  }
}
