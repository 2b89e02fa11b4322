package dev.timebound.deadline;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.Interleaved;
import dev.timebound.health.Meeting;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/** Both calls of a hedge have looked before either acts: no luck is needed, and none helps. */
class HedgeInterleavingTest {
  private static final Duration AFTER = Duration.ofMillis(50);
  private static final String RACE = "dev.timebound.deadline.MonoHedge$Race";

  /** Meets where the hedge's field is read, in the method of that name. */
  private static Object play(String method, String field, Class<? extends Callable<?>> scene)
      throws Exception {
    return new Interleaved(Map.of(RACE, new Interleaved.Read(method, field))).play(scene);
  }

  /** Both calls are made; then each does the same, at the same moment. */
  private static String both(Consumer<CoreSubscriber<? super String>> end) throws Exception {
    ManualScheduler clock = new ManualScheduler();
    List<CoreSubscriber<? super String>> calls = new ArrayList<>();
    RetryBudget budget = RetryBudget.builder().scheduler(clock).build();
    Recorder<String> recorder =
        new Recorder<>(
            1, Deadlines.put(Context.empty(), Deadline.after(AFTER.multipliedBy(9), clock)));
    new Mono<String>() {
      @Override
      public void subscribe(CoreSubscriber<? super String> actual) {
        calls.add(actual);
        actual.onSubscribe(Operators.emptySubscription());
      }
    }.transform(Deadlines.hedge(AFTER, budget)).subscribe(recorder);
    clock.pass(AFTER);
    clock.fire();
    Meeting.race(() -> ends(end, calls.get(0)), () -> ends(end, calls.get(1)));
    assertThat(recorder.faults).isEmpty();
    assertThat(clock.pending()).isZero();
    return recorder.items.size() + " items, " + recorder.ends.size() + " ends";
  }

  private static boolean ends(
      Consumer<CoreSubscriber<? super String>> end, CoreSubscriber<? super String> call) {
    end.accept(call);
    return true;
  }

  static final class TwoAnswers implements Callable<String> {
    @Override
    public String call() throws Exception {
      return both(call -> call.onNext("answer"));
    }
  }

  static final class TwoEmptyEnds implements Callable<String> {
    @Override
    public String call() throws Exception {
      return both(CoreSubscriber::onComplete);
    }
  }

  static final class TwoErrors implements Callable<String> {
    @Override
    public String call() throws Exception {
      return both(call -> call.onError(new IOException()));
    }
  }

  @Test
  @DisplayName("DL-11 two answers at the same moment: one is told, once")
  void answers() throws Exception {
    assertThat(play("set", "state", TwoAnswers.class)).isEqualTo("1 items, 1 ends");
  }

  @Test
  @DisplayName("DL-11 two empty ends at the same moment: one is told, once")
  void empty() throws Exception {
    assertThat(play("set", "state", TwoEmptyEnds.class)).isEqualTo("0 items, 1 ends");
  }

  @Test
  @DisplayName("DL-11 two errors at the same moment: one is told, once")
  void errors() throws Exception {
    assertThat(play("wasLast", "running", TwoErrors.class)).isEqualTo("0 items, 1 ends");
  }
}
