package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.HealthEvent;
import dev.timebound.test.Gate;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.scheduler.Schedulers;

/** Reads, and what becomes of the connections under them. */
class ReadConnectionsTest {
  private static Script steady() {
    Script script = Script.start();
    for (int i = 0; i < 2000; i++) {
      script = script.pause(Duration.ofMillis(10)).rows(Scripted.key(i));
    }
    return script.silence();
  }

  @Test
  @DisplayName(
      "BT-43 a subscriber that blocks stops no other read, of its channel or another, and no channel is suspected")
  void blockedSubscriber() {
    CountDownLatch release = new CountDownLatch(1);
    try (Scripted reads =
        Scripted.start(
            settings ->
                settings
                    .gapTimeout(Scripted.HOUR)
                    .pool(pool -> pool.suspectAfter(Duration.ofMillis(600))))) {
      List<HealthEvent> events = new CopyOnWriteArrayList<>();
      reads.client.pool().health().events().subscribe(events::add);
      reads.server.readRows().always(steady());
      Reader blocking =
          Reader.blocking(reads.all(), Schedulers.boundedElastic(), row -> hold(release));
      List<Reader> others = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        others.add(reads.read());
      }
      others.forEach(reader -> reader.awaitRows(150)); // 1.5 s and more
      assertThat(blocking.keys()).hasSize(1);
      assertThat(events).isEmpty();
      release.countDown();
      blocking.awaitRows(100);
      blocking.cancel();
      others.forEach(Reader::cancel);
    } finally {
      release.countDown();
    }
  }

  private static void hold(CountDownLatch until) {
    try {
      until.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  @DisplayName(
      "BT-21a a server that closes the connection for too many resets: the reads cut off go on elsewhere")
  void cutForResets() {
    Gate gate = new Gate();
    try (Scripted reads =
        Scripted.on(
            ScriptedBigtable.builder().maxResets(200, 30).start(),
            settings -> settings.gapTimeout(Scripted.HOUR).pool(pool -> pool.fixedChannels(1)))) {
      reads
          .server
          .readRows()
          .answer(
              call ->
                  Scripted.from(call) == 0
                      ? Script.start().rows(Scripted.keys(0, 3)).hold(gate)
                      : Script.start().rows(Scripted.keys(3, 6)).ok());
      List<Reader> all = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        all.add(reads.read());
      }
      all.forEach(reader -> reader.awaitRows(3));
      ScriptedConnection first = reads.server.connections().get(0);
      all.subList(0, 300).forEach(Reader::cancel);
      List<Reader> rest = all.subList(300, 500);
      eventually(() -> assertThat(rest).allMatch(Reader::isOver));
      eventually(() -> assertThat(first.isOpen()).isFalse());
      assertThat(rest)
          .allSatisfy(
              reader -> assertThat(reader.awaitComplete()).containsExactly(Scripted.keys(0, 6)));
    }
  }

  @Test
  @DisplayName("BT-21a paced, the connection lives: no read is cut off")
  void paced() {
    Gate gate = new Gate();
    try (Scripted reads =
        Scripted.on(
            ScriptedBigtable.builder().maxResets(200, 30).start(),
            settings ->
                settings
                    .gapTimeout(Scripted.HOUR)
                    .pool(
                        pool ->
                            pool.fixedChannels(1)
                                .maxCancelsPerInterval(100, Duration.ofSeconds(30))))) {
      reads
          .server
          .readRows()
          .always(
              Script.start().rows(Scripted.keys(0, 3)).hold(gate).rows(Scripted.keys(3, 6)).ok());
      List<Reader> all = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        all.add(reads.read());
      }
      all.forEach(reader -> reader.awaitRows(3));
      all.subList(0, 300).forEach(Reader::cancel);
      assertThat(reads.client.pool().inFlight()).isEqualTo(200);
      eventually(() -> assertThat(reads.server.resetsReceived()).isEqualTo(100));
      gate.open();
      assertThat(all.subList(300, 500))
          .allSatisfy(
              reader -> assertThat(reader.awaitComplete()).containsExactly(Scripted.keys(0, 6)));
      assertThat(reads.calls()).hasSize(500);
    }
  }

  @Test
  @DisplayName(
      "BT-44 a connection whose PINGs go unanswered is dead: its reads go on elsewhere, with nothing else on")
  void keepalive() {
    try (Scripted reads =
        Scripted.on(
            ScriptedBigtable.builder().answerPings(false).start(),
            settings ->
                settings
                    .gapTimeout(Scripted.HOUR)
                    .headersTimeout(Duration.ofHours(2))
                    .keepalive(Duration.ofSeconds(10), Duration.ofMillis(500))
                    .pool(pool -> pool.healthChecks(false)))) {
      reads
          .server
          .readRows()
          .next(Script.start().rows(Scripted.keys(0, 3)).silence())
          .always(Script.start().rows(Scripted.keys(3, 6)).ok());
      assertThat(reads.read().awaitComplete()).containsExactly(Scripted.keys(0, 6));
      assertThat(reads.server.pingsReceived()).isPositive();
    }
  }
}
