package dev.timebound.example;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.GrpcCalls;
import dev.timebound.grpc.GrpcServerDeadlines;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.stub.ServerCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;
import reactor.util.retry.Retry;

/** The example of docs/grpc.md. */
@DisplayName("GR-1 the example of the docs")
class GrpcCallsExampleTest {
  private static final MethodDescriptor<String, String> GREET =
      method("example/Greet", MethodType.UNARY);
  private static final MethodDescriptor<String, String> LINES =
      method("example/Lines", MethodType.SERVER_STREAMING);

  private final AtomicInteger greetings = new AtomicInteger();
  private final String name = InProcessServerBuilder.generateName();
  private final ManagedChannel channel = InProcessChannelBuilder.forName(name).build();
  private Server server = server();

  static Mono<String> greeting(Channel channel, String name) {
    return GrpcCalls.unary(channel, GREET, CallOptions.DEFAULT, name)
        .retryWhen(
            Retry.backoff(2, Duration.ofMillis(20))
                .filter(e -> Status.fromThrowable(e).getCode() == Status.Code.UNAVAILABLE))
        .transform(Deadlines.within(Duration.ofMillis(800), "greeting"));
  }

  static Flux<String> firstLines(Channel channel, String file) {
    return GrpcCalls.serverStreaming(channel, LINES, CallOptions.DEFAULT, file)
        .filter(line -> !line.isBlank())
        .take(10)
        .transform(Deadlines.within(Duration.ofSeconds(2), "lines"));
  }

  /** A method of a server, whose way to the profile is a call further on. */
  Mono<String> greet(Mono<String> profile) {
    return profile
        .flatMap(found -> greeting(channel, found))
        .transform(GrpcServerDeadlines.fromContext(Duration.ofSeconds(5)));
  }

  @BeforeEach
  void start() throws IOException {
    server.start();
    // what the very first call has to load is no part of the examples' time
    GrpcCalls.serverStreaming(channel, LINES, CallOptions.DEFAULT, "none").blockLast();
  }

  @AfterEach
  void stop() throws InterruptedException {
    channel.shutdownNow();
    server.shutdownNow();
    assertThat(channel.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
    assertThat(server.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  @DisplayName("GR-1 the second call answers")
  void retried() {
    assertThat(greeting(channel, "Ada").block()).isEqualTo("hello Ada");
    assertThat(greetings).hasValue(2);
  }

  @Test
  @DisplayName("DL-4 an answer that does not come in time")
  void late() {
    StepVerifier.create(greeting(channel, "nobody"))
        .expectErrorSatisfies(
            e ->
                assertThat(e)
                    .isInstanceOf(DeadlineExceededException.class)
                    .hasMessageContaining("deadline of 800 ms exceeded"))
        .verify(Duration.ofSeconds(20));
  }

  @Test
  @DisplayName("DL-7 a server's method closes DEADLINE_EXCEEDED when a bound further in passes")
  void edge() {
    assertThat(greet(Mono.just("Ada")).block()).isEqualTo("hello Ada");
    StepVerifier.create(greet(Mono.just("nobody")))
        .expectErrorMatches(e -> Status.fromThrowable(e).getCode() == Status.Code.DEADLINE_EXCEEDED)
        .verify(Duration.ofSeconds(20));
  }

  @Test
  @DisplayName("GR-1 as many lines as are wanted")
  void lines() {
    assertThat(firstLines(channel, "notes").collectList().block()).hasSize(10).doesNotContain("");
  }

  private Server server() {
    return InProcessServerBuilder.forName(name)
        .addService(
            ServerServiceDefinition.builder("example")
                .addMethod(
                    GREET,
                    ServerCalls.asyncUnaryCall(
                        (who, observer) -> {
                          if (greetings.incrementAndGet() == 1) {
                            observer.onError(Status.UNAVAILABLE.asException());
                          } else if (!who.equals("nobody")) {
                            observer.onNext("hello " + who);
                            observer.onCompleted();
                          }
                        }))
                .addMethod(
                    LINES,
                    ServerCalls.asyncServerStreamingCall(
                        (file, observer) -> {
                          for (int i = 0; i < 100; i++) {
                            observer.onNext(i % 2 == 0 ? "" : file + " " + i);
                          }
                          observer.onCompleted();
                        }))
                .build())
        .build();
  }

  private static MethodDescriptor<String, String> method(String name, MethodType type) {
    return MethodDescriptor.<String, String>newBuilder()
        .setType(type)
        .setFullMethodName(name)
        .setRequestMarshaller(new Text())
        .setResponseMarshaller(new Text())
        .build();
  }

  private static final class Text implements MethodDescriptor.Marshaller<String> {
    @Override
    public InputStream stream(String value) {
      return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public String parse(InputStream stream) {
      try {
        return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
