package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.BOUND;
import static dev.timebound.bigtable.Scripted.GAP;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.test.Script;
import io.grpc.CallOptions;
import io.grpc.Status;
import io.micrometer.common.KeyValue;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.Context;

@DisplayName("DL-5 each call is one observation, and a span's tags show where the time went")
class ObservationsTest {
  /** Where Micrometer's ObservationThreadLocalAccessor keeps it. */
  private static final String KEY = "micrometer.observation";

  private static final String READ_ROWS = "timebound.bigtable.read-rows";

  private final Recorder recorder = new Recorder();
  private final Thrower atStart = new Thrower("start");
  private final Thrower atError = new Thrower("error");
  private final Thrower atStop = new Thrower("stop");
  private final ObservationRegistry registry = ObservationRegistry.create();
  private final Scripted reads;

  ObservationsTest() {
    // Told of a start in this order, of an end in the reverse.
    registry
        .observationConfig()
        .observationHandler(atStop)
        .observationHandler(recorder)
        .observationHandler(atStart)
        .observationHandler(atError);
    reads = Scripted.start(settings -> settings.observations(registry));
  }

  /** What a handler is told. */
  private static final class Recorder implements ObservationHandler<Observation.Context> {
    final List<Observation.Context> started = new CopyOnWriteArrayList<>();
    final List<Observation.Context> stopped = new CopyOnWriteArrayList<>();
    final List<Observation.Context> failed = new CopyOnWriteArrayList<>();

    @Override
    public void onStart(Observation.Context context) {
      started.add(context);
    }

    @Override
    public void onError(Observation.Context context) {
      failed.add(context);
    }

    @Override
    public void onStop(Observation.Context context) {
      stopped.add(context);
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
      return true;
    }
  }

  /** Throws at that moment, while it is on. */
  private static final class Thrower implements ObservationHandler<Observation.Context> {
    private final String moment;
    volatile boolean on;

    Thrower(String moment) {
      this.moment = moment;
    }

    private void at(String now) {
      if (on && moment.equals(now)) {
        throw new IllegalStateException("handler at " + now);
      }
    }

    @Override
    public void onStart(Observation.Context context) {
      at("start");
    }

    @Override
    public void onError(Observation.Context context) {
      at("error");
    }

    @Override
    public void onStop(Observation.Context context) {
      at("stop");
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
      return true;
    }
  }

  @AfterEach
  void close() {
    reads.close();
    assertThat(recorder.stopped).as("each stopped once").hasSameElementsAs(recorder.started);
    assertThat(recorder.stopped).hasSameSizeAs(recorder.started);
  }

  private Observation.Context theOne() {
    eventually(() -> assertThat(recorder.stopped).hasSize(1));
    return recorder.stopped.get(0);
  }

  private static @Nullable String high(Observation.Context context, String key) {
    KeyValue value = context.getHighCardinalityKeyValue(key);
    return value == null ? null : value.getValue();
  }

  private static @Nullable String low(Observation.Context context, String key) {
    KeyValue value = context.getLowCardinalityKeyValue(key);
    return value == null ? null : value.getValue();
  }

  private static String outcome(Observation.Context context) {
    return Objects.requireNonNull(low(context, "outcome"));
  }

  private static List<String> steps(Observation.Context context) {
    String ledger = Objects.requireNonNull(high(context, "deadline.ledger"));
    return List.of(ledger.split(", ")).stream()
        .map(entry -> entry.replaceFirst(" [0-9.]+ \\S+$", ""))
        .toList();
  }

  @Nested
  class Reads {
    @Test
    @DisplayName("DL-5 a read that was resumed: its tags, and the ledger in order")
    void resumed() {
      reads
          .server
          .readRows()
          .next(Script.start().rows("a").status(Status.UNAVAILABLE), Script.start().rows("b").ok());
      Deadline deadline = Deadline.after(BOUND);
      deadline.charge("edge", TimeUnit.MILLISECONDS.toNanos(3));
      assertThat(reads.all().transform(Deadlines.of(deadline)).collectList().block(BOUND))
          .hasSize(2);
      Observation.Context context = theOne();
      assertThat(context.getName()).isEqualTo(READ_ROWS);
      assertThat(context.getContextualName()).isEqualTo("bigtable read-rows");
      assertThat(low(context, "method")).isEqualTo("read-rows");
      assertThat(outcome(context)).isEqualTo("ok");
      assertThat(high(context, "table")).isEqualTo(Scripted.TABLE);
      assertThat(high(context, "attempts")).isEqualTo("2");
      assertThat(high(context, "channel")).matches("bigtable-\\d+");
      assertThat(high(context, "deadline.ledger")).startsWith("edge 3 ms, ");
      assertThat(steps(context))
          .containsExactly("edge", "bigtable.read-rows attempt 1", "bigtable.read-rows attempt 2");
      assertThat(recorder.failed).isEmpty();
    }

    @Test
    @DisplayName("DL-5 without a deadline there is no ledger, and no tag of one")
    void noDeadline() {
      reads.server.readRows().next(Script.start().rows("a").ok());
      reads.read().awaitComplete();
      assertThat(high(theOne(), "deadline.ledger")).isNull();
    }

    @Test
    @DisplayName("one that failed has the error its subscriber gets")
    void failed() {
      reads.server.readRows().next(Script.start().status(Status.NOT_FOUND));
      Throwable error = reads.read().awaitError();
      Observation.Context context = theOne();
      assertThat(outcome(context)).isEqualTo("not_found");
      assertThat(context.getError()).isSameAs(error);
      assertThat(recorder.failed).hasSize(1);
    }

    @Test
    @DisplayName("a cancel is neither success nor failure: no error")
    void cancelled() {
      reads.server.readRows().next(Script.start().silence());
      Reader reader = reads.unread();
      assertThat(recorder.started).as("from its subscription on").hasSize(1);
      assertThat(recorder.stopped).isEmpty();
      reader.cancel();
      Observation.Context context = theOne();
      assertThat(outcome(context)).isEqualTo("cancelled");
      assertThat(high(context, "attempts")).isEqualTo("1");
      assertThat(context.getError()).isNull();
      assertThat(recorder.failed).isEmpty();
    }

    @Test
    @DisplayName("DL-4 DL-5 ended by its deadline: that is the error, the attempt in hand charged")
    void late() {
      reads.server.readRows().always(Script.start().silence());
      Deadline deadline = Deadline.after(GAP.multipliedBy(3));
      assertThatThrownBy(
              () -> reads.all().transform(Deadlines.of(deadline)).collectList().block(BOUND))
          .isInstanceOf(DeadlineExceededException.class);
      Observation.Context context = theOne();
      assertThat(outcome(context)).isEqualTo("deadline");
      assertThat(context.getError()).isInstanceOf(DeadlineExceededException.class);
      assertThat(steps(context))
          .startsWith("bigtable.read-rows attempt 1", "bigtable.read-rows attempt 2");
    }

    @Test
    @DisplayName("DL-5 cancelled by its deadline's timer, rows at hand: that is told as a deadline")
    void lateBetweenRows() {
      reads.server.readRows().always(Script.start().rows("a", "b").silence());
      Deadline deadline = Deadline.after(GAP);
      Reader reader = Reader.of(reads.all().transform(Deadlines.of(deadline)), 1);
      assertThat(reader.awaitError()).isInstanceOf(DeadlineExceededException.class);
      Observation.Context context = theOne();
      assertThat(outcome(context)).isEqualTo("deadline");
      assertThat(context.getError())
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("bigtable.read-rows attempt 1");
      assertThat(steps(context)).containsExactly("bigtable.read-rows attempt 1");
    }

    @Test
    @DisplayName("each subscription is one of its own")
    void retried() {
      reads
          .server
          .readRows()
          .next(Script.start().status(Status.NOT_FOUND), Script.start().rows("a").ok());
      assertThat(reads.all().retry(1).collectList().block(BOUND)).hasSize(1);
      assertThat(recorder.stopped)
          .extracting(ObservationsTest::outcome)
          .containsExactly("not_found", "ok");
    }
  }

  @Nested
  class Parent {
    @Test
    @DisplayName("it is the one in the Reactor Context; a stranger under the key is none")
    void fromContext() {
      reads.server.readRows().always(Script.start().rows("a").ok());
      Observation parent = Observation.start("parent", ObservationRegistry.create());
      reads.all().contextWrite(Context.of(KEY, parent)).collectList().block(BOUND);
      assertThat(theOne().getParentObservation()).isSameAs(parent);
      reads.all().contextWrite(Context.of(KEY, "a stranger")).collectList().block(BOUND);
      assertThat(recorder.stopped.get(1).getParentObservation()).isNull();
      parent.stop();
    }
  }

  @Nested
  class OtherCalls {
    @Test
    @DisplayName("a read of one row is told apart by its method")
    void readRow() {
      reads.server.readRows().next(Script.start().ok());
      assertThat(reads.client.readRow(Scripted.TABLE, "a").block(BOUND)).isNull();
      Observation.Context context = theOne();
      assertThat(context.getName()).isEqualTo(READ_ROWS);
      assertThat(context.getContextualName()).isEqualTo("bigtable read-row");
      assertThat(low(context, "method")).isEqualTo("read-row");
      assertThat(outcome(context)).isEqualTo("ok");
    }

    @Test
    @DisplayName("sampleRowKeys and pingAndWarm have observations of their own")
    void sampleAndPing() {
      reads
          .server
          .sampleRowKeys()
          .next(Script.start().status(Status.UNAVAILABLE), Script.start().ok());
      reads
          .client
          .sampleRowKeys(Scripted.TABLE)
          .transform(Deadlines.within(BOUND))
          .collectList()
          .block(BOUND);
      reads.client.pingAndWarm().block(BOUND);
      assertThat(recorder.stopped)
          .extracting(Observation.Context::getName)
          .containsExactly(
              "timebound.bigtable.sample-row-keys", "timebound.bigtable.ping-and-warm");
      Observation.Context sample = recorder.stopped.get(0);
      assertThat(high(sample, "table")).isEqualTo(Scripted.TABLE);
      assertThat(high(sample, "attempts")).isEqualTo("2");
      assertThat(high(sample, "channel")).startsWith("bigtable-");
      assertThat(steps(sample))
          .containsExactly(
              "bigtable.sample-row-keys attempt 1", "bigtable.sample-row-keys attempt 2");
      assertThat(recorder.stopped)
          .extracting(ObservationsTest::outcome)
          .containsExactly("ok", "ok");
      assertThat(high(recorder.stopped.get(1), "table")).isNull();
    }

    @Test
    @DisplayName("they too tell a failure, a cancel, and a deadline that passed")
    void ends() {
      reads
          .server
          .sampleRowKeys()
          .next(Script.start().status(Status.NOT_FOUND))
          .always(Script.start().silence());
      var samples = reads.client.sampleRowKeys(Scripted.TABLE);
      assertThat(samples.materialize().blockLast(BOUND)).isNotNull();
      samples.subscribe().dispose();
      assertThatThrownBy(() -> samples.transform(Deadlines.within(GAP)).collectList().block(BOUND))
          .isInstanceOf(DeadlineExceededException.class);
      eventually(() -> assertThat(recorder.stopped).hasSize(3));
      assertThat(recorder.stopped)
          .extracting(ObservationsTest::outcome)
          .containsExactly("not_found", "cancelled", "deadline");
      assertThat(recorder.failed).containsExactly(recorder.stopped.get(0), recorder.stopped.get(2));
      assertThat(steps(recorder.stopped.get(2)))
          .containsExactly("bigtable.sample-row-keys attempt 1");
    }
  }

  @Nested
  class Retries {
    private <T> Mono<T> around(Mono<T> attempt, Deadline deadline) {
      BigtableRetry retry =
          new BigtableRetry(
              new BigtableSettings("p", "i", "", GAP, 3, BOUND, GAP, GAP, Schedulers.parallel()),
              CallOptions.DEFAULT,
              BigtableObservations.of(registry));
      return retry
          .around(ObservedCall.PING_AND_WARM, "instance", a -> attempt)
          .transform(Deadlines.of(deadline));
    }

    @Test
    @DisplayName("DL-5 a call that its deadline's timer cancels is told as that, and charged")
    void late() {
      assertThatThrownBy(() -> around(Mono.never(), Deadline.after(GAP)).block(BOUND))
          .isInstanceOf(DeadlineExceededException.class);
      Observation.Context context = theOne();
      assertThat(outcome(context)).isEqualTo("deadline");
      assertThat(recorder.failed).containsExactly(context);
      assertThat(steps(context)).containsExactly("bigtable.ping-and-warm attempt 1");
    }

    @Test
    @DisplayName("DL-5 one that is cancelled in the pause after an attempt charges that once")
    void cancelledInItsPause() {
      Mono<Void> failing = Mono.error(Status.UNAVAILABLE.asRuntimeException());
      around(failing, Deadline.after(BOUND)).subscribe().dispose();
      Observation.Context context = theOne();
      assertThat(outcome(context)).isEqualTo("cancelled");
      assertThat(steps(context)).containsExactly("bigtable.ping-and-warm attempt 1");
    }
  }

  @Nested
  class Handlers {
    @Test
    @DisplayName("what a handler throws is logged: the calls go on, the other handlers are told")
    void throwing() {
      reads.server.readRows().always(Script.start().rows("a").ok());
      for (Thrower thrower : List.of(atStart, atError, atStop)) {
        thrower.on = true;
        assertThat(reads.read().awaitComplete()).containsExactly("a");
        thrower.on = false;
      }
      atError.on = true;
      reads.server.readRows().next(Script.start().status(Status.NOT_FOUND));
      assertThat(Status.fromThrowable(reads.read().awaitError()).getCode())
          .isEqualTo(Status.Code.NOT_FOUND);
      assertThat(recorder.stopped).hasSize(4);
    }
  }

  @Nested
  class Off {
    private BigtableObservations.Observed begin(@Nullable ObservationRegistry registry) {
      return BigtableObservations.of(registry)
          .begin(ObservedCall.READ_ROWS, "projects/p/instances/i/tables/t", Context.empty());
    }

    @Test
    @DisplayName("without a registry, or with one that does nothing, nothing is made for a call")
    void nothing() {
      assertThat(BigtableObservations.of(ObservationRegistry.NOOP))
          .isSameAs(BigtableObservations.of(null));
      ObservationRegistry refusing = ObservationRegistry.create();
      refusing.observationConfig().observationHandler(recorder);
      refusing.observationConfig().observationPredicate((name, context) -> false);
      assertThat(begin(null))
          .isSameAs(begin(null))
          .isSameAs(begin(ObservationRegistry.NOOP))
          .isSameAs(begin(ObservationRegistry.create()))
          .isSameAs(begin(refusing));
      begin(null).ended("ok", null, 1, null, Deadline.none());
    }
  }
}
