package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static dev.timebound.grpc.BridgeServer.await;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadlines;
import dev.timebound.deadline.RetryBudget;
import dev.timebound.grpc.BridgeServer.Reply;
import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.Mono;

/** A hedge's loser at its backend: a server on a socket. */
@Timeout(60)
class HedgedCallsTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  private final RetryBudget budget = RetryBudget.create();
  private final List<Reply> replies = new CopyOnWriteArrayList<>();

  private Mono<byte[]> hedged(BridgeServer server, Duration after) {
    return GrpcCalls.unary(server.channel, UNARY, CallOptions.DEFAULT, REQUEST)
        .transform(Deadlines.hedge(after, budget));
  }

  private static void answer(Reply reply, int with) {
    reply.message(new byte[] {(byte) with}).ok();
  }

  /** Each call waits; when the second has come, the one of this number is answered. */
  private Script answering(int number) {
    AtomicInteger come = new AtomicInteger();
    return reply -> {
      replies.add(reply);
      if (come.incrementAndGet() == 2) { // one of the two, should they come at one moment
        answer(replies.get(number), number);
      }
    };
  }

  @Test
  @DisplayName("DL-11 the second call answers: the server sees the cancel of the first")
  void firstLoses() {
    try (var server = new BridgeServer(Transport.NETTY, answering(1))) {
      byte[] answer = // no deadline that could cancel the first call for the hedge
          hedged(server, Duration.ofMillis(20))
              .transform(Deadlines.within(Duration.ofMinutes(5)))
              .block(LONG);
      assertThat(answer).containsExactly(1);
      await("the server's call is cancelled", () -> server.cancelled.get() == 1);
      assertThat(server.started).hasValue(2);
      server.assertNothingOpen();
      assertThat(server.deadlines).hasSize(2); // both carry what is left
    }
  }

  @Test
  @DisplayName("DL-11 the first call answers after all: the server sees the cancel of the second")
  void secondLoses() {
    try (var server = new BridgeServer(Transport.NETTY, answering(0))) {
      assertThat(hedged(server, Duration.ofMillis(20)).block(LONG)).containsExactly(0);
      await("the server's call is cancelled", () -> server.cancelled.get() == 1);
      server.assertNothingOpen();
      assertThat(budget.granted()).isEqualTo(1);
    }
  }

  @Test
  @DisplayName("DL-11 the caller leaves: the server sees the cancel of both")
  void bothLose() {
    try (var server = new BridgeServer(Transport.NETTY, replies::add)) {
      Mono<byte[]> call =
          hedged(server, Duration.ofMillis(20)).transform(Deadlines.within(Duration.ofMinutes(1)));
      var subscription = call.subscribe();
      await("both calls are under way", () -> replies.size() == 2);
      subscription.dispose();
      await("the server's calls are cancelled", () -> server.cancelled.get() == 2);
      server.assertNothingOpen();
    }
  }

  @Test
  @DisplayName("DL-11 an answer in time: one call")
  void inTime() {
    try (var server = new BridgeServer(Transport.NETTY, Script.messages(1, 1))) {
      assertThat(hedged(server, LONG).block(LONG)).hasSize(1);
      assertThat(server.started).hasValue(1);
      server.assertNothingOpen();
    }
  }
}
