package dev.timebound.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A member whose probes the test answers. */
final class FakeMember implements Member {
  private final String name;
  int prepared;
  int probes;
  int cancelled;
  int running;
  Supplier<Mono<Void>> prepare = Mono::empty;
  Supplier<Mono<ProbeAnswer>> answer;
  Supplier<Mono<FakeMember>> replacement = Mono::empty;
  private int replacementsAsked;
  @Nullable Member replacedBy;
  boolean ended;
  int discarded;
  boolean deaf;
  final List<Sinks.One<ProbeAnswer>> asked = new ArrayList<>();

  FakeMember(String name) {
    this.name = name;
    this.answer =
        () -> {
          Sinks.One<ProbeAnswer> sink = Sinks.one();
          asked.add(sink);
          return sink.asMono();
        };
  }

  static FakeMember named(String name) {
    return new FakeMember(name);
  }

  /** From now on every probe is answered at once. */
  void answers(ProbeAnswer a) {
    answer = () -> Mono.just(a);
  }

  /** Answers the probe under way. */
  void answer(ProbeAnswer a) {
    asked.get(asked.size() - 1).tryEmitValue(a);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Mono<Void> prepareProbe() {
    prepared++;
    return prepare.get();
  }

  @Override
  public Mono<ProbeAnswer> probe() {
    probes++;
    running++;
    return answer.get().doOnCancel(() -> cancelled++).doFinally(end -> running--);
  }

  @Override
  public boolean isListening() {
    return !deaf;
  }

  @Override
  public Mono<FakeMember> replacement() {
    // a group that asks without end would hang its test
    return ++replacementsAsked > 100 ? Mono.never() : replacement.get();
  }

  @Override
  public void replaced(Member by, Mono<Void> ended) {
    assertThat(replacedBy).as("told twice").isNull();
    replacedBy = by;
    ended.subscribe(null, null, () -> this.ended = true);
  }

  @Override
  public void discarded() {
    discarded++;
  }

  @Override
  public String toString() {
    return name;
  }
}
