package dev.timebound.bigtable;

import static dev.timebound.bigtable.Scripted.HOUR;
import static dev.timebound.bigtable.Scripted.letPass;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.LedgerEntry;
import dev.timebound.test.Gate;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedCall;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

@DisplayName("BT-36 the caller's deadline bounds it all")
class ReadDeadlineTest {
  private static final Duration BUDGET = Duration.ofSeconds(5);

  private static Reader read(Flux<Row> rows, Duration budget) {
    return Reader.of(
        Flux.from(Deadlines.<Row>within(budget, "the request").apply(rows)), Long.MAX_VALUE);
  }

  private static Duration timeout(ScriptedCall call) {
    return Objects.requireNonNull(call.timeout(), "grpc-timeout");
  }

  @Test
  @DisplayName("BT-36 gaps and attempts: each carries what is left, the exception names them")
  void attemptsCarryWhatIsLeft() {
    try (Scripted reads = Scripted.start()) {
      reads.server.readRows().always(Script.start());
      Throwable e = read(reads.all(), BUDGET).awaitError();
      assertThat(e).isInstanceOf(DeadlineExceededException.class);
      // Two gaps, and the patient third attempt that the deadline ends.
      List<ScriptedCall> calls = reads.calls();
      assertThat(calls).hasSize(3);
      assertThat(((DeadlineExceededException) e).ledger())
          .extracting(LedgerEntry::step)
          .containsExactly(
              "bigtable.read-rows attempt 1",
              "bigtable.read-rows attempt 2",
              "bigtable.read-rows attempt 3");
      assertThat(((DeadlineExceededException) e).operation()).isEqualTo("the request");
      assertThat(e.getMessage()).contains("bigtable.read-rows attempt 1");
      assertThat(timeout(calls.get(0))).isLessThanOrEqualTo(BUDGET);
      for (int i = 1; i < calls.size(); i++) {
        Duration less = timeout(calls.get(i - 1)).minus(timeout(calls.get(i)));
        assertThat(less).isGreaterThanOrEqualTo(Scripted.GAP.dividedBy(2));
      }
    }
  }

  @Test
  @DisplayName("BT-36 attempts that went on after the deadline: none starts after it")
  void noAttemptAfterIt() {
    try (Scripted reads =
        Scripted.start(
            settings ->
                settings
                    .maxAttempts(1_000_000)
                    .backoff(Duration.ofMillis(20), Duration.ofMillis(40)))) {
      reads.server.readRows().always(Script.start().status(Status.UNAVAILABLE));
      Duration budget = Duration.ofMillis(1500);
      Deadline deadline = Deadline.after(budget);
      Flux<Row> bounded = Flux.from(Deadlines.<Row>of(deadline).apply(reads.all()));
      Throwable e = Reader.of(bounded, Long.MAX_VALUE).awaitError();
      // Either the deadline itself, or a failure after which no attempt could start in time.
      assertThat(
              e instanceof DeadlineExceededException
                  || Status.fromThrowable(e).getCode() == Status.Code.UNAVAILABLE)
          .isTrue();
      letPass(Duration.ofMillis(200));
      List<ScriptedCall> calls = reads.calls();
      assertThat(calls).hasSizeGreaterThan(2);
      // What was left when it started is on the wire, so it started before.
      assertThat(calls).allMatch(call -> !timeout(call).isNegative() && !timeout(call).isZero());
      for (int i = 1; i < calls.size(); i++) {
        assertThat(timeout(calls.get(i))).isLessThan(timeout(calls.get(i - 1)));
      }
      assertThat(reads.client.pool().inFlight()).isZero();
    }
  }

  @Test
  @DisplayName(
      "BT-36 a pause that would outlast the deadline is not begun: the failure itself is told")
  void pauseTooLong() {
    try (Scripted reads =
        Scripted.start(settings -> settings.backoff(Duration.ofHours(1), Duration.ofHours(1)))) {
      reads.server.readRows().always(Script.start().status(Status.UNAVAILABLE));
      Throwable e = read(reads.all(), BUDGET).awaitError();
      assertThat(Status.fromThrowable(e).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(reads.calls()).hasSize(1);
    }
  }

  @Test
  @DisplayName("BT-36 so is a RetryInfo that asks for more than is left")
  void retryInfoTooLong() {
    try (Scripted reads = Scripted.start()) {
      reads
          .server
          .readRows()
          .always(Script.start().statusWithRetryInfo(Status.UNAVAILABLE, Duration.ofDays(4000)));
      Throwable e = read(reads.all(), BUDGET).awaitError();
      assertThat(Status.fromThrowable(e).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(reads.calls()).hasSize(1);
    }
  }

  @Test
  @DisplayName("BT-36 a deadline that has passed already sends nothing")
  void passedAlready() {
    try (Scripted reads = Scripted.start()) {
      reads.server.readRows().always(Script.start().rows("a").ok());
      Deadline passed = Deadline.after(Duration.ZERO);
      // Put there by nobody who enforces it.
      Flux<Row> rows = reads.all().contextWrite(context -> Deadlines.put(context, passed));
      assertThat(Reader.of(rows, 1).awaitError()).isInstanceOf(DeadlineExceededException.class);
      assertThat(reads.calls()).isEmpty();
    }
  }

  @Test
  @DisplayName("BT-36 a deadline that only travels is kept to by each attempt, with its own ledger")
  void onlyTravels() {
    try (Scripted reads = Scripted.start()) {
      reads.server.readRows().always(Script.start());
      Deadline deadline = Deadline.after(BUDGET);
      Flux<Row> rows = reads.all().contextWrite(context -> Deadlines.put(context, deadline));
      Throwable e = Reader.of(rows, 1).awaitError();
      assertThat(e).isInstanceOf(DeadlineExceededException.class);
      assertThat(((DeadlineExceededException) e).operation()).isEqualTo("bigtable.read-rows");
      assertThat(((DeadlineExceededException) e).ledger())
          .extracting(LedgerEntry::step)
          .containsExactly(
              "bigtable.read-rows attempt 1",
              "bigtable.read-rows attempt 2",
              "bigtable.read-rows attempt 3");
    }
  }

  @Test
  @DisplayName("BT-36 a bound without a name calls the read by its own")
  void ownNames() {
    try (Scripted reads = Scripted.start(settings -> settings.gapTimeout(HOUR))) {
      reads.server.readRows().always(Script.start());
      Duration budget = Duration.ofMillis(100);
      UnaryOperator<Publisher<Row>> within = Deadlines.within(budget);
      assertThat(operation(reads.all().transform(within))).isEqualTo("bigtable.read-rows");
      assertThat(operation(reads.all().take(7).transform(within))).isEqualTo("bigtable.read-rows");
      assertThat(operation(reads.client.readRow("t", "a").transform(within)))
          .isEqualTo("bigtable.read-rows");
      reads.server.route("SampleRowKeys").always(Script.start());
      assertThat(
              operation(
                  reads.client.sampleRowKeys("t").transform(Deadlines.<KeyOffset>within(budget))))
          .isEqualTo("bigtable.sample-row-keys");
    }
  }

  private static String operation(Publisher<?> bounded) {
    AtomicReference<Throwable> error = new AtomicReference<>();
    Flux.from(bounded).doOnError(error::set).onErrorComplete().blockLast(Scripted.BOUND);
    return ((DeadlineExceededException) Objects.requireNonNull(error.get(), "error")).operation();
  }

  @Test
  @DisplayName("BT-36 HE-11 the caller's deadline is not the channel's fault")
  void nobodysFault() {
    try (Scripted reads = Scripted.start(settings -> settings.gapTimeout(HOUR))) {
      reads.server.readRows().always(Script.start());
      Deadline deadline = Deadline.after(Duration.ofSeconds(1));
      Flux<Row> rows = reads.all().contextWrite(context -> Deadlines.put(context, deadline));
      assertThat(Reader.of(rows, 1).awaitError()).isInstanceOf(DeadlineExceededException.class);
      assertThat(read(reads.all(), Duration.ofSeconds(1)).awaitError())
          .isInstanceOf(DeadlineExceededException.class);
      Reader cancelled = reads.read();
      reads.server.readRows().awaitCall(3);
      cancelled.cancel();
      reads.server.awaitOpenStreams(0);
      assertThat(reads.penalties()).containsExactly(0, 0);
    }
  }

  @Test
  @DisplayName("BT-36 rows that came in time are delivered before the deadline ends the read")
  void rowsBeforeIt() {
    Gate never = new Gate();
    try (Scripted reads = Scripted.start(settings -> settings.gapTimeout(HOUR))) {
      reads.server.readRows().always(Script.start().rows("a", "b").hold(never).ok());
      Reader reader = read(reads.all(), Duration.ofSeconds(2));
      assertThat(reader.awaitError()).isInstanceOf(DeadlineExceededException.class);
      assertThat(reader.keys()).containsExactly("a", "b");
      assertThat(reads.calls()).hasSize(1);
    }
  }
}
