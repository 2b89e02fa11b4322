package dev.timebound.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.health.HealthEngine;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.scheduler.VirtualTimeScheduler;

/** A fetcher over a scripted store, in virtual time of its own. */
public final class Bench implements AutoCloseable {
  public final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  public final ScriptedStore store = new ScriptedStore(time);
  public final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  public final HealthEngine health = HealthEngine.builder().scheduler(time).seed(1).build();
  public final PartitionStore served;
  public final PartitionFetcher fetcher;

  public Bench(SharePolicy policy) {
    this(settings -> settings.policy(policy));
  }

  public Bench(UnaryOperator<PartitionFetcherBuilder> settings) {
    this(settings, store -> store);
  }

  public Bench(
      UnaryOperator<PartitionFetcherBuilder> settings, UnaryOperator<PartitionStore> wrapper) {
    served = wrapper.apply(store);
    fetcher =
        settings
            .apply(PartitionFetcher.builder(served).scheduler(time).health(health).meters(meters))
            .build();
  }

  /** What a subscriber was given, and when, in milliseconds. */
  public final class Answer<T> {
    public final List<T> items = new ArrayList<>();
    public final List<Double> times = new ArrayList<>();
    @Nullable Throwable error;
    public double at = -1;
    public Disposable subscription = Disposables.disposed();

    public T item() {
      assertThat(items).as("answered by %s ms", store.now()).hasSize(1);
      return items.get(0);
    }

    public boolean isOver() {
      return at >= 0;
    }
  }

  /** A request for the partitions by number, from offset 0 on. */
  public static FetchRequest.Builder request(double maxWait, int... partitions) {
    FetchRequest.Builder request = FetchRequest.builder().maxWait(ScriptedStore.duration(maxWait));
    for (int partition : partitions) {
      request.partition(ScriptedStore.partition(partition), 0);
    }
    return request;
  }

  public Answer<FetchResponse> begin(FetchRequest.Builder request) {
    return subscribe(fetcher.fetch(request.build()).flux());
  }

  <T> Answer<T> subscribe(Flux<T> flux) {
    Answer<T> answer = new Answer<>();
    answer.subscription =
        flux.doFinally(end -> answer.at = store.now())
            .subscribe(
                item -> {
                  answer.items.add(item);
                  answer.times.add(store.now());
                },
                error -> answer.error = error);
    return answer;
  }

  /** Runs a request to its end. */
  public Answer<FetchResponse> fetch(FetchRequest.Builder request) {
    Answer<FetchResponse> answer = begin(request);
    for (int i = 0; i < 4000 && !answer.isOver(); i++) {
      advance(10);
    }
    assertThat(answer.isOver()).as("over by %s ms", store.now()).isTrue();
    return answer;
  }

  <T> Answer<T> run(Mono<T> mono) {
    Answer<T> answer = subscribe(mono.flux());
    for (int i = 0; i < 4000 && !answer.isOver(); i++) {
      advance(10);
    }
    return answer;
  }

  public void advance(double ms) {
    time.advanceTimeBy(ScriptedStore.duration(ms));
  }

  public PartitionData data(Answer<FetchResponse> answer, int partition) {
    return answer.item().partition(ScriptedStore.partition(partition));
  }

  public boolean isPenalised(int partition) {
    return health.keyedGroups().stream()
        .anyMatch(group -> group.penalised().contains(ScriptedStore.partition(partition)));
  }

  public double abandoned(String operation, String stage) {
    Counter counter =
        meters
            .find("timebound.fetch.read.deadline.exceeded")
            .tags("operation", operation, "stage", stage)
            .counter();
    return counter == null ? 0 : Objects.requireNonNull(counter).count();
  }

  /** Nothing is left: no call under way, no listener. */
  @Override
  public void close() {
    fetcher.close();
    health.close();
    assertThat(store.active()).as("calls left under way").isZero();
    assertThat(store.listeners()).as("listeners left").isZero();
    time.dispose();
  }
}
