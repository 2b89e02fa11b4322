package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.spi.ILoggingEvent;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("FE-22 FE-23 abandoned reads")
class AbandonedTest {
  @Test
  @DisplayName("FE-22 FE-23 an abandoned read is cancelled, counted and told, once in a while")
  void told() {
    try (Bench bench = new Bench(SharePolicy.HALVING);
        Logged logged = Logged.of(PartitionFetcher.class)) {
      bench.store.on(3).stalls();
      for (int i = 0; i < 5; i++) {
        bench.fetch(FetchRequest.builder().partition(partition(3), 7));
      }
      assertThat(bench.store.on(3).cancelled).isEqualTo(5);
      assertThat(bench.abandoned("fetch", "reading")).isEqualTo(5);
      assertThat(logged.warnings())
          .extracting(ILoggingEvent::getFormattedMessage)
          .containsExactly(
              "fetch read deadline exceeded: topic=orders partition=3 offset=7 operation=fetch;"
                  + " 0 more since the last line on it");
      bench.advance(5000);
      bench.fetch(FetchRequest.builder().partition(partition(3), 8));
      assertThat(logged.warnings().get(1).getFormattedMessage())
          .contains("offset=8")
          .contains("4 more since");
    }
  }

  @Test
  @DisplayName("FE-23 one that was never started is counted so, and told at debug")
  void notStarted() {
    try (Bench bench =
            new Bench(s -> s.policy(SharePolicy.PARALLEL).concurrency(1).maxConcurrency(1));
        Logged logged = Logged.of(PartitionFetcher.class)) {
      bench.store.on(0).stalls();
      bench.store.on(1).healthy();
      bench.fetch(request(500, 0, 1));
      assertThat(bench.abandoned("fetch", "not_started")).isEqualTo(1);
      assertThat(logged.debugs())
          .extracting(ILoggingEvent::getFormattedMessage)
          .containsExactly(
              "fetch read not started: topic=orders partition=1 offset=0 operation=fetch"
                  + " stage=not_started");
      assertThat(logged.warnings()).hasSize(1);
    }
  }

  @Test
  @DisplayName("FE-25 a store's error is told in the log, once in a while for each partition")
  void failed() {
    try (Bench bench = new Bench(SharePolicy.HALVING);
        Logged logged = Logged.of(PartitionFetcher.class)) {
      bench.store.on(3).fails(new IllegalStateException("torn"));
      for (int i = 0; i < 3; i++) {
        bench.fetch(FetchRequest.builder().partition(partition(3), 7));
      }
      assertThat(logged.warnings())
          .extracting(ILoggingEvent::getFormattedMessage)
          .containsExactly(
              "fetch read failed: topic=orders partition=3 offset=7:"
                  + " java.lang.IllegalStateException: torn; 0 more since the last line on it");
      assertThat(logged.debugs()).hasSize(1).first().extracting("throwableProxy").isNotNull();
    }
  }

  @Test
  @DisplayName("FE-23 a log of stalls holds back for each partition, and forgets in a bounded way")
  void log() {
    StallLog log = new StallLog(TimeUnit.SECONDS.toNanos(30));
    assertThat(log.stalled(partition(0), 0)).isZero();
    assertThat(log.stalled(partition(1), 0)).isZero();
    assertThat(log.stalled(partition(0), 1)).isEqualTo(StallLog.NOT_TOLD);
    assertThat(log.stalled(partition(0), TimeUnit.SECONDS.toNanos(30))).isEqualTo(1);
    for (int i = 2; i < 20_000; i++) {
      log.stalled(partition(i), 1);
    }
    assertThat(log.stalled(partition(1), 2)).as("forgotten, so told").isZero();
  }

  @Test
  @DisplayName("FE-10 what a stalled partition cost is on the deadline's account")
  void ledger() {
    try (Bench bench = new Bench(SharePolicy.HALVING)) {
      bench.store.on(0).stalls();
      bench.store.on(1).healthy();
      dev.timebound.deadline.Deadline caller =
          dev.timebound.deadline.Deadline.after(ScriptedStore.duration(20_000), bench.time);
      bench.run(
          bench
              .fetcher
              .fetch(request(500, 0, 1).build())
              .contextWrite(c -> dev.timebound.deadline.Deadlines.put(c, caller)));
      List<String> steps = caller.ledger().stream().map(Object::toString).toList();
      assertThat(steps).hasSize(1);
      assertThat(steps.get(0)).contains("fetch orders-0 stalled").contains("2.75");
    }
  }
}
