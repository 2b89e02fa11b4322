package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.BridgeServer.Script;
import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;
import reactor.test.scheduler.VirtualTimeScheduler;

class GrpcCallsDeadlineTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  private static Flux<byte[]> unary(Channel channel, CallOptions options) {
    return GrpcCalls.unary(channel, UNARY, options, REQUEST).flux();
  }

  private static Flux<byte[]> stream(Channel channel, CallOptions options) {
    return GrpcCalls.serverStreaming(channel, STREAM, options, REQUEST);
  }

  private static List<Flux<byte[]>> both(Channel channel, CallOptions options) {
    return List.of(unary(channel, options), stream(channel, options));
  }

  /** In the Context and nothing that enforces it there: what ends the call is the call's own. */
  private static <T> Flux<T> under(Deadline deadline, Flux<T> flux) {
    return flux.contextWrite(context -> Deadlines.put(context, deadline));
  }

  private static long secondsLeft(io.grpc.Deadline deadline) {
    return deadline.timeRemaining(TimeUnit.SECONDS);
  }

  @Nested
  @DisplayName("BT-36 what is left travels with the call")
  class OnTheWire {
    @Test
    @DisplayName("BT-36 the server sees the Context's deadline, of a unary call and of a stream")
    void serverSees() {
      try (var server = new BridgeServer(Transport.NETTY, Script.messages(1, 1))) {
        for (Flux<byte[]> call : both(server.channel, CallOptions.DEFAULT)) {
          under(Deadline.after(Duration.ofMinutes(2)), call).blockLast(LONG);
        }
        assertThat(server.deadlines)
            .hasSize(2)
            .allSatisfy(deadline -> assertThat(secondsLeft(deadline)).isBetween(90L, 120L));
      }
    }

    @Test
    @DisplayName("BT-36 each subscription carries what is left then, not what there was")
    void lessEachTime() {
      VirtualTimeScheduler clock = VirtualTimeScheduler.create();
      FakeCalls fake = new FakeCalls();
      Deadline deadline = Deadline.after(Duration.ofMinutes(10), clock);
      Flux<byte[]> call = under(deadline, stream(fake, CallOptions.DEFAULT));
      call.subscribe();
      clock.advanceTimeBy(Duration.ofMinutes(9));
      call.subscribe();
      assertThat(fake.calls)
          .extracting(made -> made.options.getDeadline())
          .satisfiesExactly(
              first -> assertThat(secondsLeft(first)).isBetween(500L, 600L),
              second -> assertThat(secondsLeft(second)).isBetween(1L, 60L));
    }

    @Test
    @DisplayName("BT-36 the lesser of it and the one in the options counts")
    void lesser() {
      FakeCalls fake = new FakeCalls();
      Deadline minutes = Deadline.after(Duration.ofMinutes(5));
      under(minutes, stream(fake, CallOptions.DEFAULT.withDeadlineAfter(Duration.ofHours(1))))
          .subscribe();
      under(minutes, stream(fake, CallOptions.DEFAULT.withDeadlineAfter(Duration.ofMinutes(1))))
          .subscribe();
      stream(fake, CallOptions.DEFAULT.withDeadlineAfter(Duration.ofHours(1))).subscribe();
      stream(fake, CallOptions.DEFAULT).subscribe();
      assertThat(fake.calls)
          .extracting(made -> made.options.getDeadline())
          .satisfiesExactly(
              a -> assertThat(secondsLeft(a)).isBetween(240L, 300L),
              b -> assertThat(secondsLeft(b)).isBetween(1L, 60L),
              c -> assertThat(secondsLeft(c)).isBetween(3000L, 3600L),
              d -> assertThat(d).isNull());
    }
  }

  @Nested
  @DisplayName("DL-4 a deadline that passes")
  class Passing {
    @Test
    @DisplayName("DL-4 has passed before subscription: fails, and no call is made")
    void expired() {
      FakeCalls fake = new FakeCalls();
      for (Flux<byte[]> call : both(fake, CallOptions.DEFAULT)) {
        StepVerifier.create(under(Deadline.after(Duration.ZERO), call))
            .expectErrorSatisfies(
                e -> {
                  assertThat(e).isInstanceOf(DeadlineExceededException.class).hasNoCause();
                  assertThat(e.getMessage()).contains("test/");
                })
            .verify(LONG);
      }
      assertThat(fake.calls).isEmpty();
    }

    @Test
    @DisplayName("DL-4 ends a retry without limit that holds the only thread of its timer")
    void retriedOnItsOwnThread() {
      FakeChannel down = new FakeChannel();
      down.newCallFails = new IllegalStateException("down");
      Scheduler only = Schedulers.newSingle("only");
      try {
        for (Flux<byte[]> call : both(down, CallOptions.DEFAULT)) {
          StepVerifier.create(
                  call.retry()
                      .subscribeOn(only)
                      .transform(Deadlines.within(Duration.ofMillis(50), "read", only)))
              .expectErrorMatches(
                  e ->
                      e instanceof DeadlineExceededException late
                          && late.operation().equals("read"))
              .verify(LONG);
        }
      } finally {
        only.dispose();
      }
    }

    @Test
    @DisplayName("DL-4 passes while the server is silent: the call is ended, the status its cause")
    void passes() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        for (Flux<byte[]> call : both(server.connected().channel, CallOptions.DEFAULT)) {
          StepVerifier.create(under(Deadline.after(Duration.ofSeconds(1)), call))
              .expectErrorSatisfies(
                  e -> {
                    assertThat(e)
                        .isInstanceOf(DeadlineExceededException.class)
                        .hasCauseInstanceOf(StatusRuntimeException.class)
                        .hasMessageStartingWith("test/");
                    assertThat(Status.fromThrowable(e).getCode())
                        .isEqualTo(Status.Code.DEADLINE_EXCEEDED);
                  })
              .verify(LONG);
        }
        BridgeServer.await("both calls at the server", () -> server.started.get() == 2);
        server.assertNothingOpen();
      }
    }

    @Test
    @DisplayName("HE-2a the server's own DEADLINE_EXCEEDED stays a status: ours has not passed")
    void serversOwn() {
      Script says = reply -> reply.close(Status.DEADLINE_EXCEEDED, new Metadata());
      try (var server = new BridgeServer(Transport.NETTY, says)) {
        for (Flux<byte[]> call : both(server.channel, CallOptions.DEFAULT)) {
          StepVerifier.create(under(Deadline.after(Duration.ofMinutes(1)), call))
              .verifyErrorMatches(e -> e instanceof StatusRuntimeException);
        }
      }
    }

    @Test
    @DisplayName("HE-2a the deadline of the options, where it is the earlier one, stays a status")
    void optionsOwn() {
      try (var server = new BridgeServer(Transport.NETTY, Script.silent())) {
        CallOptions brief = CallOptions.DEFAULT.withDeadlineAfter(Duration.ofMillis(200));
        StepVerifier.create(
                under(Deadline.after(Duration.ofMinutes(1)), unary(server.channel, brief)))
            .expectErrorMatches(e -> e instanceof StatusRuntimeException)
            .verify(LONG);
      }
    }
  }
}
