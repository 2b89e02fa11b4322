package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasScript;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.test.scheduler.VirtualTimeScheduler;

/** A server that takes so many streams of a connection and no more, and readers that are slow. */
@DisplayName("CAS-2c streams that have run out")
class StreamLimitTest {
  private static final int STREAMS = 4;
  private static final Duration SHORT = Duration.ofSeconds(1);

  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final ScriptedCas server = ScriptedCas.builder().maxStreams(STREAMS).start();
  private final FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());
  private final Digest digest = server.put("content");
  private final Digest large = server.put(new byte[4 << 20]);
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  private final List<Taker> readers = new ArrayList<>();
  private final ExecutorService one = Executors.newSingleThreadExecutor();
  private @Nullable CasRing made;

  private CasRing ring(UnaryOperator<CasRingBuilder> settings) {
    Endpoint endpoint = Endpoint.parse(proxy.hostAndPort());
    CasConfig config = new CasConfig(List.of(new CasConfig.Shard("s0", 1, List.of(endpoint), "")));
    CasRing ring =
        settings.apply(CasRing.builder(config).scheduler(time).retries(0).meters(meters)).build();
    made = ring;
    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
    return ring;
  }

  /** A ring that opens no second connection. */
  private CasRing narrow() {
    return ring(settings -> settings.connectionsPerEndpoint(1));
  }

  /** Readers that have their first piece, and ask for no second one. */
  private void slowReaders(CasRing ring, int count) {
    for (int i = 0; i < count; i++) {
      Taker reader = new Taker();
      readers.add(reader);
      ring.read(large).subscribe(reader);
      reader.request(1);
      until("it has its piece", () -> reader.pieces.size() == 1);
    }
  }

  private static MemberStatus status(CasRing ring) {
    return ring.health().members().iterator().next().status();
  }

  private static String ours(Throwable failure) {
    assertThat(failure)
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED));
    return String.valueOf(failure.getMessage());
  }

  private double waits() {
    return meters.get("timebound.cas.stream.waits").tag("shard", "s0").counter().count();
  }

  @AfterEach
  void close() {
    readers.forEach(Taker::cancel);
    CasRing ring = made;
    if (ring != null) {
      until("no claim is open", () -> ring.health().openClaims() == 0);
      until("no call is open", () -> ring.openCalls() == 0);
      ring.close();
    }
    server.awaitOpenConnections(0);
    one.shutdown();
    proxy.close();
    server.close();
    time.dispose();
  }

  @Test
  @DisplayName("CAS-2c another connection is opened, and used, where slow readers hold all streams")
  void another() {
    CasRing ring = ring(settings -> settings);
    slowReaders(ring, STREAMS);
    assertThat(proxy.accepted()).isEqualTo(1);

    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
    assertThat(ring.findMissing(Set.of(digest)).block(LONG)).isNotNull();
    assertThat(ring.write(new byte[] {1}).block(LONG)).isNotNull();

    assertThat(proxy.accepted()).isEqualTo(2);
    assertThat(waits()).isEqualTo(1);
    assertThat(status(ring)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName(
      "CAS-2c calls that come at once take as many connections as they need, and none waits in gRPC")
  void atOnce() {
    CasRing ring = ring(settings -> settings);
    CompletableFuture<Void> gate = new CompletableFuture<>();
    server.reads().always(CasScript.correct().after(gate));
    List<CompletableFuture<@Nullable Throwable>> all = new ArrayList<>();
    for (int i = 0; i < 3 * STREAMS; i++) {
      all.add(end(ring.read(digest)));
    }

    until("all are with the server", () -> server.openCalls() == 3 * STREAMS);
    assertThat(proxy.accepted()).isEqualTo(3);
    assertThat(server.connections())
        .allSatisfy(connection -> assertThat(connection.openCalls()).isEqualTo(STREAMS));
    gate.complete(null);
    for (CompletableFuture<@Nullable Throwable> each : all) {
      assertThat(each.join()).isNull();
    }
  }

  @Test
  @DisplayName("CAS-2c no more connections than the setting says; who waits is served in turn")
  void bounded() {
    CasRing ring = ring(settings -> settings.connectionsPerEndpoint(2));
    slowReaders(ring, 2 * STREAMS);
    List<CompletableFuture<@Nullable Throwable>> waiting = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      waiting.add(end(ring.read(digest)));
    }
    time.advanceTimeBy(Duration.ofSeconds(1));
    assertThat(waiting).allSatisfy(each -> assertThat(each).isNotDone());
    assertThat(server.openCalls()).isEqualTo(2 * STREAMS);

    readers.get(0).cancel();

    for (CompletableFuture<@Nullable Throwable> each : waiting) {
      assertThat(each.join()).isNull();
    }
    assertThat(proxy.accepted()).isEqualTo(2);
  }

  @Test
  @DisplayName("CAS-2c who comes later does not take the stream that another one waits for")
  void inTurn() {
    Digest other = server.put("another content");
    CasRing ring = ring(settings -> settings.connectionsPerEndpoint(1).deliverOn(one));
    slowReaders(ring, STREAMS);
    int before = server.reads().calls().size();
    CompletableFuture<@Nullable Throwable> first = end(ring.read(digest));
    CountDownLatch held = new CountDownLatch(1);
    one.execute(
        () -> {
          try {
            held.await();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        });
    readers.get(0).cancel();
    CompletableFuture<@Nullable Throwable> second = end(ring.read(other));
    held.countDown();

    assertThat(first.join()).isNull();
    assertThat(second.join()).isNull();
    assertThat(server.reads().calls().stream().skip(before).map(CasCall::digests))
        .containsExactly(List.of(digest), List.of(other));
  }

  @Test
  @DisplayName(
      "CAS-2c CAS-20a who waits for a stream in vain blames nobody, and is told for what he waited")
  void blamesNobody() {
    CasRing ring = narrow();
    slowReaders(ring, STREAMS);
    for (int i = 0; i < 4; i++) {
      CompletableFuture<@Nullable Throwable> read = end(ring.read(digest));
      CompletableFuture<@Nullable Throwable> write = end(ring.write(new byte[] {2}));
      var found = ring.findMissing(Set.of(digest)).toFuture();
      time.advanceTimeBy(Duration.ofSeconds(40));

      assertThat(ours(read.join())).contains("s0", "waited for a free stream", "4 calls");
      assertThat(ours(write.join())).contains("s0", "waited for a free stream");
      assertThat(found.join().unknown().values())
          .singleElement()
          .satisfies(why -> assertThat(ours(why)).contains("waited for a free stream"));
    }

    assertThat(status(ring)).isEqualTo(MemberStatus.HEALTHY);
    assertThat(proxy.accepted()).isEqualTo(1);
    readers.get(0).cancel();
    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
  }

  @Test
  @DisplayName(
      "CAS-2c CAS-20a a call that sets out while the server lowers its limit waits in gRPC, and"
          + " blames nobody")
  void lowered() {
    AtomicInteger lowerTo = new AtomicInteger();
    CasRing ring =
        ring(
            settings ->
                settings
                    .connectionsPerEndpoint(1)
                    .headers(
                        context -> { // it has its place, and has not set out
                          int streams = lowerTo.getAndSet(0);
                          if (streams > 0) {
                            server.connections().get(0).maxStreams(streams);
                          }
                          return new Metadata();
                        }));
    slowReaders(ring, 1);
    for (int i = 0; i < 4; i++) {
      server.connections().get(0).maxStreams(STREAMS);
      lowerTo.set(1);
      CompletableFuture<@Nullable Throwable> read = end(ring.read(digest));
      time.advanceTimeBy(Duration.ofSeconds(40));

      assertThat(ours(read.join()))
          .contains("s0", "waited for a free stream: 2 calls are open on its connection");
    }
    assertThat(server.openCalls()).isEqualTo(1);
    assertThat(status(ring)).isEqualTo(MemberStatus.HEALTHY);

    server.connections().get(0).maxStreams(STREAMS);
    lowerTo.set(1);
    CompletableFuture<@Nullable Throwable> read = end(ring.read(digest));
    readers.get(0).cancel();
    assertThat(read.join()).isNull();
  }

  @Test
  @DisplayName("CAS-2c an upload waits for its stream as long as a call may take, and no longer")
  void upload() {
    CasRing ring = narrow();
    assertThat(ring.write(new byte[] {1}).block(LONG)).isNotNull(); // what the server can is known
    slowReaders(ring, STREAMS);
    CompletableFuture<@Nullable Throwable> write = end(ring.write(new byte[] {2}));

    time.advanceTimeBy(Duration.ofSeconds(29));
    assertThat(write).isNotDone();
    time.advanceTimeBy(Duration.ofSeconds(5));

    assertThat(ours(write.join())).contains("s0", "waited for a free stream");
    assertThat(status(ring)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-2c DL-5 the caller's own deadline tells of the wait in its ledger")
  void deadline() {
    CasRing ring = narrow();
    slowReaders(ring, STREAMS);
    Deadline deadline = Deadline.after(SHORT);

    Throwable late = failure(ring.read(digest).transform(Deadlines.of(deadline)));

    assertThat(late).isInstanceOf(DeadlineExceededException.class);
    until("the wait is charged", () -> deadline.ledger().toString().contains("free stream of s0"));
  }

  @Test
  @DisplayName("CAS-2c who gives up while he waits leaves his place to the next")
  void givesUp() {
    CasRing ring = narrow();
    slowReaders(ring, STREAMS);
    var first = ring.readAll(digest).subscribe();
    CompletableFuture<@Nullable Throwable> second = end(ring.read(digest));
    first.dispose();

    readers.get(0).cancel();

    assertThat(second.join()).isNull();
  }

  @Test
  @DisplayName("CAS-2c a connection that is not needed any more is closed, the first one stays")
  void idle() {
    CasRing ring = ring(settings -> settings);
    slowReaders(ring, STREAMS + 1);
    assertThat(proxy.accepted()).isEqualTo(2);
    time.advanceTimeBy(Duration.ofMinutes(5));
    assertThat(server.openConnections()).isEqualTo(2);

    readers.forEach(Taker::cancel);
    until("no call is open", () -> ring.openCalls() == 0);
    time.advanceTimeBy(Duration.ofSeconds(31));
    assertThat(server.openConnections()).isEqualTo(2);
    time.advanceTimeBy(Duration.ofSeconds(31));

    server.awaitOpenConnections(1);
    assertThat(ring.readAll(digest).block(LONG)).isNotNull();
    assertThat(proxy.accepted()).isEqualTo(2);
  }

  @Test
  @DisplayName("CAS-2c where no further connection is to be had the one that stands serves on")
  void noFurther() {
    CasRing ring = ring(settings -> settings.rpcTimeout(Duration.ofMinutes(10)));
    slowReaders(ring, STREAMS);
    proxy.refuse();
    CompletableFuture<@Nullable Throwable> waits = end(ring.read(digest));
    until(
        "the attempt has failed",
        () ->
            meters.find("timebound.cas.connect.failures").counters().stream()
                .anyMatch(failures -> failures.count() > 0));
    assertThat(waits).isNotDone();

    readers.get(0).cancel();

    assertThat(waits.join()).isNull();
    assertThat(status(ring)).isEqualTo(MemberStatus.HEALTHY);
  }

  @Test
  @DisplayName("CAS-2c where the attempt failed another one follows while calls wait")
  void anotherAttempt() {
    CasRing ring = ring(settings -> settings.rpcTimeout(Duration.ofMinutes(10)));
    slowReaders(ring, STREAMS);
    proxy.refuse();
    CompletableFuture<@Nullable Throwable> waits = end(ring.read(digest));
    until(
        "the attempt has failed",
        () ->
            meters.find("timebound.cas.connect.failures").counters().stream()
                .anyMatch(failures -> failures.count() > 0));
    proxy.accept();

    until(
        "the read ends",
        () -> {
          time.advanceTimeBy(Duration.ofMillis(5)); // the pause may begin only now
          return waits.isDone();
        });

    assertThat(waits.join()).isNull();
  }

  @Test
  @DisplayName("CAS-2c the setting says what it expected")
  void setting() {
    CasRingBuilder builder =
        CasRing.builder(new CasConfig(List.of(CasConfig.Shard.of("s0", "localhost:1"))));
    assertThatThrownBy(() -> builder.connectionsPerEndpoint(0))
        .hasMessage("connectionsPerEndpoint: 0 (expected: 1 to 100)");
    assertThatThrownBy(() -> builder.connectionsPerEndpoint(101))
        .hasMessage("connectionsPerEndpoint: 101 (expected: 1 to 100)");
  }
}
