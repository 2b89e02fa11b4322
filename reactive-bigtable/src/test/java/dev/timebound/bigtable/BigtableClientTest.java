package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.GAP;
import static dev.timebound.bigtable.Scripted.HOUR;
import static dev.timebound.bigtable.Scripted.letPass;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.PingAndWarmRequest;
import com.google.bigtable.v2.SampleRowKeysRequest;
import com.google.bigtable.v2.SampleRowKeysResponse;
import com.google.protobuf.ByteString;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.LedgerEntry;
import dev.timebound.health.HealthEvent;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedCall.End;
import io.grpc.Status;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

class BigtableClientTest {

  @Nested
  @DisplayName("BT-2 priming that fails leaves the client usable")
  class Priming {
    private void works(Scripted reads) {
      reads.server.readRows().always(Script.start().rows("a").ok());
      assertThat(reads.read().awaitComplete()).containsExactly("a");
    }

    @Test
    @DisplayName("BT-2 PERMISSION_DENIED")
    void denied() {
      ScriptedBigtable server = ScriptedBigtable.start();
      server.pingAndWarm().always(Script.start().status(Status.PERMISSION_DENIED));
      try (Scripted reads = Scripted.on(server, settings -> settings)) {
        works(reads);
      }
    }

    @Test
    @DisplayName("BT-2 silence, of the server or of the whole connection")
    void silence() {
      ScriptedBigtable server = ScriptedBigtable.start();
      server.pingAndWarm().always(Script.start());
      try (Scripted reads =
          Scripted.on(server, settings -> settings.pool(pool -> pool.warmTimeout(GAP)))) {
        works(reads);
      }
    }

    @Test
    @DisplayName("BT-2 no server at all when the client is built")
    void noServer() {
      try (ScriptedBigtable server = ScriptedBigtable.start();
          FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port())) {
        proxy.refuse();
        try (Scripted reads = new Scripted(server, proxy.port(), settings -> settings)) {
          server.readRows().always(Script.start().rows("a").ok());
          assertThat(Status.fromThrowable(reads.read().awaitError()).getCode())
              .isEqualTo(Status.Code.UNAVAILABLE);
          proxy.accept();
          // As soon as grpc-java tries to connect again.
          eventually(
              () ->
                  assertThat(
                          reads
                              .all()
                              .map(row -> "row")
                              .onErrorReturn("error")
                              .blockLast(GAP.multipliedBy(20)))
                      .isEqualTo("row"));
        }
      }
    }
  }

  @Test
  @DisplayName("BT-1 a client closed while it connects, on a busy machine: every read ends")
  void closedWhileItConnects() throws InterruptedException {
    AtomicBoolean busy = new AtomicBoolean(true);
    List<Thread> burners = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      Thread burner = new Thread(() -> spinWhile(busy));
      burner.start();
      burners.add(burner);
    }
    try (ScriptedBigtable server = ScriptedBigtable.start()) {
      server.readRows().always(Script.start().rows("a").ok());
      for (int round = 0; round < 4; round++) {
        BigtableClient client =
            BigtableClient.builder()
                .projectId("p")
                .instanceId("i")
                .endpoint("localhost", server.port())
                .plaintext(true)
                .build();
        List<Mono<Boolean>> reads = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
          reads.add(client.readRow("t", "a").hasElement().onErrorReturn(false).cache());
        }
        reads.forEach(Mono::subscribe);
        client.close();
        Mono.when(reads).block(Scripted.BOUND);
        assertThat(client.pool().inFlight()).isZero();
      }
    } finally {
      busy.set(false);
      for (Thread burner : burners) {
        burner.join();
      }
    }
  }

  private static void spinWhile(AtomicBoolean busy) {
    while (busy.get()) {
      Thread.onSpinWait();
    }
  }

  @Nested
  @DisplayName("an executor to deliver on that refuses")
  class RefusingExecutor {
    @Test
    @DisplayName("costs no row, no read and no channel")
    void refuses() {
      ScriptedBigtable server = ScriptedBigtable.start();
      AtomicInteger tasks = new AtomicInteger();
      Executor busy =
          task -> {
            if (tasks.incrementAndGet() % 2 == 0) {
              throw new RejectedExecutionException("full");
            }
            Schedulers.boundedElastic().schedule(task);
          };
      try (Scripted reads = Scripted.on(server, settings -> settings.deliverOn(busy))) {
        server.readRows().always(Script.start().rows("a").rows("b").ok());
        for (int i = 0; i < 20; i++) {
          assertThat(reads.read().awaitComplete()).containsExactly("a", "b");
        }
      }
    }

    @Test
    @DisplayName("shut down before the client is closed: the read under way still ends")
    void shutDownFirst() {
      ScriptedBigtable server = ScriptedBigtable.start();
      ExecutorService executor = Executors.newSingleThreadExecutor();
      try (Scripted reads =
          Scripted.on(server, settings -> settings.deliverOn(executor).gapTimeout(HOUR))) {
        server.readRows().always(Script.start().rows("a").silence());
        Reader read = reads.read();
        read.awaitRows(1);
        executor.shutdown();
        reads.client.close();
        assertThat(Status.fromThrowable(read.awaitError()).getCode())
            .isEqualTo(Status.Code.UNAVAILABLE);
      }
    }
  }

  @Nested
  @DisplayName("BT-1 BT-11 calls beyond the server's stream limit")
  class StreamLimit {
    @Test
    @DisplayName("BT-1 BT-11 are counted, blame no connection, and are served in turn")
    void queued() {
      ScriptedBigtable server = ScriptedBigtable.builder().maxConcurrentStreams(2).start();
      List<HealthEvent> events = new CopyOnWriteArrayList<>();
      try (Scripted reads =
          Scripted.on(
              server, settings -> settings.gapTimeout(HOUR).pool(pool -> pool.suspectAfter(GAP)))) {
        reads.client.pool().health().events().subscribe(events::add);
        // One channel receives all the time; on the other an unread stream holds every slot.
        Script flowing = Script.start();
        for (int i = 0; i < 2000; i++) {
          flowing = flowing.rows(Scripted.key(i)).pause(Duration.ofMillis(10));
        }
        server.readRows().next(flowing, Script.start(), Script.start(), Script.start());
        Reader flow = reads.read();
        flow.awaitRows(1);
        List<Reader> unread = List.of(reads.unread(), reads.unread(), reads.unread());
        server.readRows().always(Script.start().rows("a").ok());
        List<Reader> queued = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
          queued.add(reads.read());
        }
        eventually(() -> assertThat(reads.client.pool().inFlight()).isEqualTo(9));
        letPass(GAP.multipliedBy(4));
        assertThat(reads.calls()).hasSize(4);
        assertThat(queued).noneMatch(Reader::isOver);
        assertThat(events).isEmpty();
        assertThat(reads.penalties()).containsExactly(0, 0);
        flow.cancel();
        unread.forEach(Reader::cancel);
        queued.forEach(reader -> assertThat(reader.awaitComplete()).containsExactly("a"));
        assertThat(reads.client.pool().channels())
            .allMatch(channel -> channel.status() == MemberStatus.HEALTHY);
      }
    }
  }

  @Nested
  @DisplayName("BT-1 a cancel that frees a stream lets the next call out")
  class FreedByCancel {
    @Test
    @DisplayName("BT-1 on a connection where nothing else happens that would send it")
    void quietConnection() {
      ScriptedBigtable server = ScriptedBigtable.builder().maxConcurrentStreams(1).start();
      try (Scripted reads =
          Scripted.on(
              server, settings -> settings.gapTimeout(HOUR).pool(pool -> pool.fixedChannels(1)))) {
        reads.server.readRows().always(Script.start());
        Reader open = reads.unread();
        for (int i = 2; i < 30; i++) {
          Reader queued = Reader.of(reads.all(), 0);
          open.cancel();
          reads.server.readRows().awaitCall(i);
          open = queued;
        }
        open.cancel();
      }
    }
  }

  @Nested
  class Close {
    @Test
    @DisplayName(
        "a close ends the reads that are open, those that wait for a retry, and later ones")
    void endsReads() {
      try (Scripted reads =
          Scripted.start(
              settings ->
                  settings
                      .gapTimeout(HOUR)
                      .backoff(Duration.ofMillis(50), Duration.ofMillis(50)))) {
        reads.server.readRows().always(Script.start().rows("a").silence());
        List<Reader> open = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
          open.add(reads.read());
        }
        open.forEach(reader -> reader.awaitRows(1));
        Reader unread = reads.unread();
        reads.client.close();
        for (Reader reader : open) {
          assertThat(Status.fromThrowable(reader.awaitError()).getCode())
              .isEqualTo(Status.Code.UNAVAILABLE);
        }
        unread.request(1);
        unread.awaitError();
        assertThat(Status.fromThrowable(reads.read().awaitError()).getCode())
            .isEqualTo(Status.Code.UNAVAILABLE);
        reads.client.close();
      }
    }
  }

  @Nested
  @DisplayName("sampleRowKeys and pingAndWarm")
  class WholeAnswers {
    private final Script samples =
        Script.start().message(sample("k", 100)).message(sample("", 200)).ok();

    private SampleRowKeysResponse sample(String key, long offset) {
      return SampleRowKeysResponse.newBuilder()
          .setRowKey(ByteString.copyFromUtf8(key))
          .setOffsetBytes(offset)
          .build();
    }

    @Test
    @DisplayName("BT-34 BT-35 samples cut in the middle are read again elsewhere, and come once")
    void samplesAgain() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .sampleRowKeys()
            .next(Script.start().message(sample("k", 100)).status(Status.UNAVAILABLE))
            .always(samples);
        assertThat(reads.client.sampleRowKeys("t").collectList().block(Scripted.BOUND))
            .containsExactly(
                new KeyOffset(ByteString.copyFromUtf8("k"), 100),
                new KeyOffset(ByteString.EMPTY, 200));
        var calls = reads.server.sampleRowKeys().calls();
        assertThat(calls).hasSize(2);
        assertThat(calls.get(0).connection()).isNotEqualTo(calls.get(1).connection());
        assertThat(calls.get(0).request(SampleRowKeysRequest.class).getTableName())
            .isEqualTo("projects/timebound/instances/test/tables/t");
      }
    }

    @Test
    @DisplayName("no headers for headersTimeout: retried elsewhere, the channel penalised")
    void headersTimeout() {
      try (Scripted reads = Scripted.start(settings -> settings.headersTimeout(GAP))) {
        reads.server.sampleRowKeys().next(Script.start()).always(samples);
        assertThat(reads.client.sampleRowKeys("t").collectList().block(Scripted.BOUND)).hasSize(2);
        assertThat(reads.penalties()).containsExactly(25, 0);
        var calls = reads.server.sampleRowKeys().calls();
        calls.get(0).awaitEnd(End.RESET_BY_CLIENT);
        assertThat(calls.get(0).connection()).isNotEqualTo(calls.get(1).connection());
        // Headers alone end that wait.
        dev.timebound.test.Gate slow = new dev.timebound.test.Gate();
        reads
            .server
            .sampleRowKeys()
            .next(Script.start().headers().hold(slow).message(sample("", 1)).ok());
        Mono<List<KeyOffset>> patient = reads.client.sampleRowKeys("t").collectList();
        AtomicReference<@Nullable List<KeyOffset>> got = new AtomicReference<>();
        patient.subscribe(got::set);
        slow.awaitHeld(1);
        letPass(GAP.multipliedBy(3));
        slow.open();
        eventually(() -> assertThat(got.get()).hasSize(1));
      }
    }

    @Test
    @DisplayName("BT-34 what cannot be mended is told at once; three attempts of the rest")
    void errors() {
      try (Scripted reads = Scripted.start()) {
        reads.server.pingAndWarm().next(Script.start().status(Status.NOT_FOUND));
        int before = reads.server.pingAndWarm().calls().size();
        assertThat(failure(reads.client.pingAndWarm()).getCode()).isEqualTo(Status.Code.NOT_FOUND);
        reads
            .server
            .pingAndWarm()
            .next(
                Script.start().status(Status.UNAVAILABLE),
                Script.start().status(Status.UNAVAILABLE),
                Script.start().status(Status.UNAVAILABLE));
        assertThat(failure(reads.client.pingAndWarm()).getCode())
            .isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(reads.server.pingAndWarm().calls()).hasSize(before + 4);
        reads.client.pingAndWarm().block(Scripted.BOUND);
        assertThat(
                reads
                    .server
                    .pingAndWarm()
                    .awaitCall(before + 5)
                    .request(PingAndWarmRequest.class)
                    .getName())
            .isEqualTo("projects/timebound/instances/test");
      }
    }

    private Status failure(Mono<?> mono) {
      AtomicReference<@Nullable Throwable> error = new AtomicReference<>();
      mono.subscribe(value -> {}, error::set);
      eventually(() -> assertThat(error.get()).isNotNull());
      return Status.fromThrowable(Objects.requireNonNull(error.get()));
    }

    @Test
    @DisplayName("BT-36 the caller's deadline bounds them, and its ledger names the attempts")
    void deadline() {
      try (Scripted reads = Scripted.start(settings -> settings.headersTimeout(GAP))) {
        reads.server.sampleRowKeys().always(Script.start());
        AtomicReference<@Nullable Throwable> error = new AtomicReference<>();
        Flux.from(
                Deadlines.<KeyOffset>within(GAP.multipliedBy(5).dividedBy(2))
                    .apply(reads.client.sampleRowKeys("t")))
            .subscribe(value -> {}, error::set);
        eventually(() -> assertThat(error.get()).isInstanceOf(DeadlineExceededException.class));
        assertThat(((DeadlineExceededException) Objects.requireNonNull(error.get())).ledger())
            .extracting(LedgerEntry::step)
            .startsWith("bigtable.sample-row-keys attempt 1", "bigtable.sample-row-keys attempt 2");
      }
    }
  }

  @Nested
  class Meters {
    @Test
    @DisplayName("reads by outcome, attempts, and what they were resumed for")
    void counted() {
      SimpleMeterRegistry registry = new SimpleMeterRegistry();
      try (Scripted reads = Scripted.start(settings -> settings.meters(registry))) {
        reads
            .server
            .readRows()
            .next(
                Script.start().rows("a").ok(),
                Script.start().rows("a").status(Status.UNAVAILABLE),
                Script.start().rows("b").silence(),
                Script.start().rows("c").ok(),
                Script.start().status(Status.NOT_FOUND),
                Script.start().chunks(dev.timebound.test.Rows.begun("a", "v")).ok(),
                Script.start(),
                Script.start());
        reads.read().awaitComplete();
        reads.read().awaitComplete();
        reads.read().awaitError();
        reads.read().awaitError();
        Reader cancelled = reads.unread();
        cancelled.cancel();
        Reader late =
            Reader.of(
                Flux.from(Deadlines.<Row>within(Duration.ofMillis(200)).apply(reads.all())), 1);
        assertThat(late.awaitError()).isInstanceOf(DeadlineExceededException.class);
        Flux.from(
                Deadlines.<Row>within(Duration.ofMillis(1))
                    .apply(reads.all().delaySubscription(Duration.ofMillis(500))))
            .onErrorComplete()
            .blockLast(Scripted.BOUND);
        assertThat(timer(registry, "ok")).isEqualTo(2);
        assertThat(timer(registry, "not_found")).isEqualTo(1);
        assertThat(timer(registry, "invalid")).isEqualTo(1);
        eventually(() -> assertThat(timer(registry, "cancelled")).isEqualTo(1));
        eventually(() -> assertThat(timer(registry, "deadline")).isEqualTo(1));
        assertThat(registry.get("timebound.bigtable.attempts").counter().count()).isEqualTo(8);
        assertThat(resumes(registry, "unavailable")).isEqualTo(1);
        assertThat(resumes(registry, "gap_timeout")).isEqualTo(1);
        assertThat(registry.get("timebound.pool.in.flight").tag("pool", "bigtable").gauge().value())
            .isZero();
      }
    }

    private long timer(SimpleMeterRegistry registry, String outcome) {
      var timer = registry.find("timebound.bigtable.reads").tag("outcome", outcome).timer();
      return timer == null ? 0 : timer.count();
    }

    private double resumes(SimpleMeterRegistry registry, String reason) {
      return registry.get("timebound.bigtable.resumes").tag("reason", reason).counter().count();
    }
  }
}
