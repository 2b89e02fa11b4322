package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import io.r2dbc.spi.Result;
import java.lang.reflect.Proxy;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Operators;
import reactor.test.publisher.TestPublisher;

@DisplayName("PG-19 a result that is given up tells nobody of an error that is nobody's")
class RoutedResultTest {
  private final TestPublisher<Long> rows =
      TestPublisher.createNoncompliant(TestPublisher.Violation.CLEANUP_ON_TERMINATE);

  @SuppressWarnings("NullAway") // its router is asked for nothing: it is given up before that
  private Result result() {
    Result of =
        (Result)
            Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {Result.class},
                (self, method, arguments) -> rows.flux());
    ReadSession session =
        new ReadSession(null, ReadOptions.defaults(), Fence.none(), Deadline.none(), false);
    Execution again =
        new Execution() {
          @Override
          public Flux<Result> on(io.r2dbc.spi.Connection connection) {
            return Flux.never();
          }

          @Override
          public boolean isSingle() {
            return true;
          }

          @Override
          public boolean isStreamed() {
            return false;
          }
        };
    return new RoutedResult(of, session, again, null);
  }

  @Test
  @DisplayName("PG-19 before its first row, when it might have been had from the writer")
  void beforeItsFirstRow() {
    try (Logged log = Logged.of(Operators.class)) {
      Disposable given = Flux.from(result().getRowsUpdated()).subscribe(n -> {}, e -> {});
      given.dispose();
      rows.error(new R2dbcNonTransientResourceException("its connection was closed"));
      assertThat(log.errors()).isEmpty();
    }
  }
}
