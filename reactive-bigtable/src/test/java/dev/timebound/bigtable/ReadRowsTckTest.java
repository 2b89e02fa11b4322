package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.Script;
import io.grpc.Status;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestInstance;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import org.reactivestreams.tck.PublisherVerification;
import org.reactivestreams.tck.TestEnvironment;
import reactor.core.CoreSubscriber;

/** A read is a publisher of the reactive-streams specification, on a server that cuts it short. */
@DisplayName("BT-37 reactive-streams TCK")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ReadRowsTckTest {
  private static final String FAILS = "fails";
  private static final int ROWS_AN_ATTEMPT = 5;
  private final Scripted reads = Scripted.start(settings -> settings.gapTimeout(Scripted.HOUR));

  ReadRowsTckTest() {
    reads
        .server
        .readRows()
        .answer(
            call -> {
              String table = call.readRows().getTableName();
              if (table.endsWith(FAILS)) {
                return Script.start().status(Status.NOT_FOUND);
              }
              long rows = Long.parseLong(table.substring(table.lastIndexOf('-') + 1));
              int from = Scripted.from(call);
              // Each attempt gives a few rows and fails: the signals of many are one sequence.
              int to = (int) Math.min(rows, from + ROWS_AN_ATTEMPT);
              Script script = Scripted.rows(Script.start(), from, to, 2);
              return to == rows ? script.ok() : script.status(Status.UNAVAILABLE);
            });
  }

  @AfterAll
  void nothingIsLeft() {
    reads.close();
  }

  @TestFactory
  Stream<DynamicTest> rows() {
    return Tck.tests(new RowsVerification());
  }

  @Test
  @DisplayName("the runner runs the methods, and turns red for a publisher that breaks the rules")
  void seenRed() {
    List<String> failed = Tck.failures(new BrokenVerification());
    assertThat(failed)
        .contains(
            "required_spec102_maySignalLessThanRequestedAndTerminateSubscription",
            "required_spec101_subscriptionRequestMustResultInTheCorrectNumberOfProducedElements");
    assertThat(Tck.tests(new RowsVerification()).count()).isGreaterThanOrEqualTo(35);
  }

  private final class RowsVerification extends PublisherVerification<Row> {
    RowsVerification() {
      super(new TestEnvironment(10_000, 150, 50), 1_000);
    }

    @Override
    public Publisher<Row> createPublisher(long elements) {
      return bare("rows-" + elements);
    }

    @Override
    public Publisher<Row> createFailedPublisher() {
      return bare(FAILS);
    }

    /** Without Reactor's strict subscriber, which would keep some of the rules in its place. */
    private Publisher<Row> bare(String table) {
      return subscriber -> {
        Objects.requireNonNull(subscriber);
        reads.client.readRows(Query.builder(table).build()).subscribe(new Passing<>(subscriber));
      };
    }
  }

  /** Passes every signal on as it is. */
  private record Passing<T>(Subscriber<? super T> to) implements CoreSubscriber<T> {
    @Override
    public void onSubscribe(Subscription s) {
      to.onSubscribe(s);
    }

    @Override
    public void onNext(T t) {
      to.onNext(t);
    }

    @Override
    public void onError(Throwable t) {
      to.onError(t);
    }

    @Override
    public void onComplete() {
      to.onComplete();
    }
  }

  /** Completes at once, whatever was to come. */
  private static final class BrokenVerification extends PublisherVerification<Row> {
    BrokenVerification() {
      super(new TestEnvironment(100, 50));
    }

    @Override
    public Publisher<Row> createPublisher(long elements) {
      return subscriber -> {
        subscriber.onSubscribe(
            new Subscription() {
              @Override
              public void request(long n) {}

              @Override
              public void cancel() {}
            });
        subscriber.onComplete();
      };
    }

    @Override
    public Publisher<Row> createFailedPublisher() {
      return createPublisher(0);
    }
  }
}
