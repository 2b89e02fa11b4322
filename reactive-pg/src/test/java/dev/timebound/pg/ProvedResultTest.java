package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.test.StepVerifier;
import reactor.test.publisher.TestPublisher;

@DisplayName("PG-10 no row of a statement that is sent late is seen before the verdict")
class ProvedResultTest {
  private static final List<String> SEEN = new ArrayList<>();

  private final TestPublisher<Boolean> proof = TestPublisher.create();
  private final TestPublisher<String> rows = TestPublisher.create();
  private final Verdict verdict =
      Verdict.of(proof.mono(), RoutedDatabase.builder().writer(new NoFactory()).settings());
  private final Result result =
      new ProvedResult(
          new Fake(rows.flux(), "here"),
          verdict,
          cause -> Flux.just(new Fake(Flux.just("theirs"), "there")));

  static Stream<Function<Result, Publisher<String>>> ways() {
    return Stream.of(
        r -> r.map((row, metadata) -> seen(row)),
        r -> r.map((Readable row) -> seen(row)),
        r -> r.flatMap(segment -> Flux.just(seen(segment))),
        r ->
            r.filter(segment -> !seen(segment).isEmpty())
                .map((row, metadata) -> String.valueOf(row)));
  }

  private static String seen(Object row) {
    SEEN.add(row.toString());
    return row.toString();
  }

  @ParameterizedTest
  @MethodSource("ways")
  @DisplayName("consumed at once, so that it is sent at once; let through once proved")
  void proved(Function<Result, Publisher<String>> way) {
    SEEN.clear();
    StepVerifier.create(way.apply(result))
        .then(rows::assertWasSubscribed)
        .then(() -> proof.emit(true))
        .then(() -> rows.emit("mine"))
        .expectNext("here mine")
        .verifyComplete();
    assertThat(SEEN).contains("here mine");
  }

  @ParameterizedTest
  @MethodSource("ways")
  @DisplayName("where BEGIN was refused and the statement ran all the same: none of its rows")
  void refused(Function<Result, Publisher<String>> way) {
    SEEN.clear();
    StepVerifier.create(way.apply(result))
        .then(() -> proof.error(new IllegalStateException("no BEGIN")))
        .then(() -> rows.next("mine"))
        .expectNext("there theirs")
        .verifyComplete();
    assertThat(SEEN).doesNotContain("here mine");
    rows.assertWasCancelled();
  }

  @ParameterizedTest
  @MethodSource("ways")
  @DisplayName("a row that comes before the verdict, against the connection's order, is refused")
  void tooEarly(Function<Result, Publisher<String>> way) {
    SEEN.clear();
    StepVerifier.create(way.apply(result))
        .then(() -> rows.next("mine"))
        .expectNext("there theirs")
        .verifyComplete();
    assertThat(SEEN).doesNotContain("here mine");
  }

  @Test
  @DisplayName("the proof's error goes before what it made of the statement")
  void causes() {
    Result failing = new ProvedResult(new Fake(rows.flux(), "here"), verdict, Flux::error);
    StepVerifier.create(failing.getRowsUpdated())
        .then(() -> proof.error(new IllegalStateException("stale")))
        .then(() -> rows.error(new IllegalArgumentException("25P02")))
        .verifyErrorMessage("stale");
  }

  /** Its rows say who gave them. */
  private record Fake(Flux<String> rows, String name) implements Result {
    private Flux<Row> named() {
      return rows.map(
          row ->
              (Row)
                  Proxy.newProxyInstance(
                      getClass().getClassLoader(),
                      new Class<?>[] {Row.class, RowSegment.class},
                      (self, method, arguments) ->
                          method.getName().equals("row") ? self : name + " " + row));
    }

    @Override
    public Publisher<Long> getRowsUpdated() {
      return rows.count();
    }

    @Override
    public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
      RowMetadata none =
          (RowMetadata)
              Proxy.newProxyInstance(
                  getClass().getClassLoader(),
                  new Class<?>[] {RowMetadata.class},
                  (self, method, arguments) -> "");
      return named().map(row -> mapping.apply(row, none));
    }

    @Override
    public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
      return named().map(mapping);
    }

    @Override
    public Result filter(Predicate<Segment> filter) {
      Flux<String> kept = named().cast(Segment.class).filter(filter).map(x -> x.toString());
      return new Fake(kept.map(text -> text.substring(name.length() + 1)), name);
    }

    @Override
    public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
      return named().cast(Segment.class).concatMap(mapping);
    }
  }

  private static final class NoFactory implements io.r2dbc.spi.ConnectionFactory {
    @Override
    public Publisher<io.r2dbc.spi.Connection> create() {
      return Flux.never();
    }

    @Override
    public io.r2dbc.spi.ConnectionFactoryMetadata getMetadata() {
      return () -> "none";
    }
  }
}
