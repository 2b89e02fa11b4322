package dev.timebound.example;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** The example of docs/deadline.md, on the public face alone. */
class ProfileExampleTest {
  record Profile(String user, List<String> orders) {}

  /** Any client that answers with a Mono or a Flux. */
  interface Backend {
    Mono<String> user(String id, Duration atMost);

    Flux<String> orders(String id);
  }

  static Mono<Profile> profile(Backend backend, String id) {
    Mono<String> user =
        Deadlines.defer(
            "users.get",
            deadline -> {
              long before = deadline.remainingNanos();
              return backend
                  .user(id, deadline.remaining())
                  .doFinally(
                      end -> deadline.charge("users.get", before - deadline.remainingNanos()));
            });
    Mono<List<String>> orders =
        backend
            .orders(id)
            .transform(Deadlines.gapTimeout(Duration.ofMillis(300)))
            .transform(Deadlines.within(Duration.ofMillis(500)))
            .onErrorResume(DeadlineExceededException.class, late -> Flux.empty())
            .collectList();
    return user.zipWith(orders, Profile::new)
        .transform(Deadlines.within(Duration.ofMillis(800), "profile"));
  }

  private static Backend backend(Duration userTakes, Duration orderTakes) {
    return new Backend() {
      @Override
      public Mono<String> user(String id, Duration atMost) {
        return Mono.delay(userTakes).thenReturn("user " + id);
      }

      @Override
      public Flux<String> orders(String id) {
        return Flux.interval(orderTakes).map(n -> "order " + n).take(9);
      }
    };
  }

  @Test
  @DisplayName("DL-3 the documented example answers with what came in time")
  void partial() {
    StepVerifier.withVirtualTime(
            () -> profile(backend(Duration.ofMillis(100), Duration.ofMillis(200)), "7"))
        .thenAwait(Duration.ofSeconds(1))
        .expectNext(new Profile("user 7", List.of("order 0", "order 1")))
        .verifyComplete();
  }

  @Test
  @DisplayName("DL-5 the documented example says where the time went")
  void tooLate() {
    StepVerifier.withVirtualTime(
            () -> profile(backend(Duration.ofSeconds(2), Duration.ofMillis(200)), "7"))
        .thenAwait(Duration.ofSeconds(1))
        .verifyErrorSatisfies(
            e ->
                assertThat(e)
                    .hasMessage(
                        "profile: deadline of 800 ms exceeded after 800 ms: users.get 800 ms"));
  }
}
