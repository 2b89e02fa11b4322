package dev.timebound.example;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.DeadlineHeaders;
import dev.timebound.deadline.DeadlineScope;
import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.RetryBudget;
import dev.timebound.deadline.RetryWithin;
import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The examples of docs/deadline.md: retries, hedges, shares, edges. */
@Timeout(60)
class DeadlineExamplesTest {
  interface Client {
    Mono<String> get(String id);
  }

  private static final class BusyException extends IOException {
    private static final long serialVersionUID = 1L;

    Duration retryAfter() {
      return Duration.ofMillis(1);
    }
  }

  private final RetryBudget budget = RetryBudget.create();
  private final AtomicInteger calls = new AtomicInteger();

  @Nested
  class Retries {
    private final Client users =
        id ->
            Mono.defer(
                () ->
                    calls.incrementAndGet() == 1
                        ? Mono.error(new BusyException())
                        : Mono.just("user " + id));

    Mono<String> user(String id) {
      return users
          .get(id)
          .retryWhen(
              RetryWithin.maxRetries(3)
                  .filter(e -> e instanceof IOException)
                  .minDelay(e -> e instanceof BusyException busy ? busy.retryAfter() : null)
                  .budget(budget)
                  .operation("users.get"))
          .transform(Deadlines.within(Duration.ofMillis(800)));
    }

    @Test
    @DisplayName("DL-8 the example of the docs")
    void example() {
      assertThat(user("7").block()).isEqualTo("user 7");
      assertThat(calls).hasValue(2);
      assertThat(budget.granted()).isEqualTo(1);
    }
  }

  @Nested
  class Hedges {
    private final Client prices =
        item ->
            Mono.defer(() -> calls.incrementAndGet() == 1 ? Mono.never() : Mono.just("12 " + item));

    @Test
    @DisplayName("DL-11 the example of the docs")
    void example() {
      Mono<String> price =
          prices.get("EUR").transform(Deadlines.hedge(Duration.ofMillis(50), budget));
      assertThat(price.block()).isEqualTo("12 EUR");
    }
  }

  @Nested
  class Shares {
    record Shard(String name, boolean isStalled) {
      Flux<String> read(String query) {
        Flux<String> rows = Flux.just(name + " " + query);
        return isStalled ? rows.concatWith(Flux.never()) : rows;
      }
    }

    @Test
    @DisplayName("DL-12 the example of the docs")
    void example() {
      List<Shard> shards = List.of(new Shard("a", true), new Shard("b", false));
      String query = "q";

      List<String> missing = new CopyOnWriteArrayList<>();
      Mono<List<String>> rows =
          Deadlines.concatMapShared(
                  shards,
                  shard -> shard.read(query),
                  (shard, late) -> {
                    missing.add(shard.name());
                    return Mono.empty();
                  })
              .collectList()
              .transform(Deadlines.within(Duration.ofSeconds(2)));

      assertThat(rows.block()).containsExactly("a q", "b q");
      assertThat(missing).containsExactly("a");
    }
  }

  @Nested
  class Edges {
    record Request(Map<String, String> headers) {
      @Nullable String header(String name) {
        return headers.get(name);
      }

      void setHeader(String name, String value) {
        headers.put(name, value);
      }
    }

    record Response(int status, @Nullable String body) {
      static Response badRequest(@Nullable String why) {
        return new Response(400, why);
      }
    }

    private final DeadlineHeaders headers =
        DeadlineHeaders.builder().ceiling(Duration.ofSeconds(10)).refuseMalformed(true).build();

    Mono<Response> serve(Request request) {
      DeadlineHeaders.Incoming in = headers.read(request::header);
      return in.isRefused()
          ? Mono.just(Response.badRequest(in.refusal()))
          : send(new Request(new HashMap<>())).transform(Deadlines.of(in.deadline()));
    }

    Mono<Response> send(Request request) {
      return Deadlines.defer(
          deadline ->
              headers.write(deadline, request::setHeader)
                  ? Mono.just(new Response(200, request.header("X-Request-Timeout")))
                  : Mono.error(new DeadlineExceededException("send", deadline)));
    }

    @Test
    @DisplayName("DL-7 the example of the docs: headers")
    void headers() {
      assertThat(serve(new Request(Map.of("X-Request-Timeout", "soon"))).block())
          .extracting(Response::status)
          .isEqualTo(400);
      Response answer = serve(new Request(Map.of("X-Request-Timeout", "9"))).block();
      assertThat(answer).isNotNull();
      assertThat(answer.status()).isEqualTo(200);
      assertThat(Double.parseDouble(String.valueOf(answer.body()))).isBetween(1.0, 8.995);
    }

    @Test
    @DisplayName("DL-7 the example of the docs: threads")
    void threads() {
      Mono<Duration> left = Deadlines.defer(deadline -> Mono.just(deadline.remaining()));
      try (DeadlineScope scope = DeadlineScope.open(Deadline.after(Duration.ofMillis(800)))) {
        assertThat(left.transform(Deadlines.within(Duration.ofHours(1))).contextCapture().block())
            .isLessThanOrEqualTo(Duration.ofMillis(800));
      }
    }
  }
}
