package dev.timebound.demo.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.fetch.ErrorCode;
import dev.timebound.fetch.FetchRequest;
import dev.timebound.fetch.FetchResponse;
import dev.timebound.fetch.PartitionData;
import dev.timebound.fetch.TopicPartition;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

class StallRunTest {
  private static final Phases PHASES = new Phases(1, 1, 2, 1);
  private static final Backlog BACKLOG = new Backlog(5, 100);

  private final List<String> did = new ArrayList<>();
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final FakeSide side = new FakeSide();

  @Test
  @DisplayName("stalled, read, lifted, read whole, closed, looked at; a line a second")
  void whole() throws Exception {
    Map<Client, Figures> report = run(Variant.HALVING);

    assertThat(did)
        .containsExactly(
            "looked", "stalled", "started", "ran 3500", "lifted", "closed", "looked", "ran 500");
    assertThat(out.toString(StandardCharsets.UTF_8).lines().filter(line -> line.contains("rounds")))
        .hasSize(PHASES.total(Variant.HALVING));
    assertThat(report).containsOnlyKeys(Client.JAVA);
    Figures figures = report.values().iterator().next();
    assertThat(figures.received()).as("as of the lifting").containsExactly(0L, 7L, 0L);
    assertThat(figures.healthyPerSecond()).as("all of it before the mark").isZero();
    assertThat(figures.rounds().ended()).isEqualTo(2);
    assertThat(figures.abandoned()).isEqualTo(6);
    assertThat(figures.cancelled()).as("in this run").isEqualTo(2);
    assertThat(figures.leftRunning()).as("the worse of two looks").isEqualTo(3);
    assertThat(figures.stalledAtEnd()).isEqualTo(5);
    assertThat(figures.lost()).isZero();
    assertThat(figures.failure()).isEqualTo("none to speak of");
  }

  @Test
  @DisplayName(
      "a client whose Fetches were for partition 0 alone so far is given some seconds more")
  void early() throws Exception {
    side.asks = false;
    run(Variant.PARALLEL);
    assertThat(out.toString(StandardCharsets.UTF_8).lines().filter(line -> line.contains("rounds")))
        .hasSize(PHASES.total(Variant.PARALLEL) + 8);
  }

  @Test
  @DisplayName("without a stall there is none")
  void unstalled() throws Exception {
    run(Variant.UNSTALLED);
    assertThat(did).doesNotContain("stalled").contains("started", "closed");
  }

  @Test
  @DisplayName("a client that cannot be started: the stall is lifted and all is closed")
  void failing() {
    side.failure = new IOException("no kcat");
    assertThatThrownBy(() -> run(Variant.PARALLEL)).hasMessage("no kcat");
    assertThat(did).endsWith("lifted", "closed");
  }

  private Map<Client, Figures> run(Variant variant) throws Exception {
    PrintStream print = new PrintStream(out, true, StandardCharsets.UTF_8);
    return new StallRun(variant, List.of(side), new FakeDatabase(), PHASES, BACKLOG, print).run();
  }

  private final class FakeDatabase implements Database {
    @Override
    public void stall() {
      did.add("stalled");
    }

    @Override
    public void lift() {
      did.add("lifted");
      for (int number = 0; number < BACKLOG.stalledRecords(); number++) {
        side.account.received(Backlog.STALLED, number);
      }
    }

    @Override
    public long running(Client client, Duration longerThan) {
      did.add("ran " + longerThan.toMillis());
      return longerThan.toMillis() > 1_000 ? 3 : 1;
    }

    @Override
    public long cancelled(Client client) {
      did.add("looked");
      return did.contains("closed") ? 9 : 7;
    }
  }

  private final class FakeSide implements Side {
    private final Account account = new Account();
    private final Rounds rounds = new Rounds();
    private IOException failure = new IOException();
    private boolean asks = true;

    @Override
    public Client client() {
      return Client.JAVA;
    }

    @Override
    public void start() throws IOException {
      if (failure.getMessage() != null) {
        throw failure;
      }
      did.add("started");
      for (int number = 0; number < 7; number++) {
        account.received(1, number);
      }
      FetchRequest request =
          FetchRequest.builder().partition(new TopicPartition("demo", 0), 0).build();
      PartitionData data =
          new PartitionData(
              new TopicPartition("demo", asks ? 1 : 0),
              ErrorCode.NONE,
              0,
              0,
              0,
              List.of(),
              List.of(),
              null);
      FetchResponse answer = new FetchResponse(List.of(data));
      for (int i = 0; i < 2; i++) {
        rounds.around(any -> Mono.just(answer)).apply(request).subscribe();
      }
    }

    @Override
    public Account account() {
      return account;
    }

    @Override
    public Rounds rounds() {
      return rounds;
    }

    @Override
    public long abandoned() {
      return 6;
    }

    @Override
    public String failure() {
      return "none to speak of";
    }

    @Override
    public void close() {
      did.add("closed");
    }
  }
}
