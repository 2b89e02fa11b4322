package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.COLLECT;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.BridgeServer.Transport;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestInstance;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import org.reactivestreams.tck.PublisherVerification;
import org.reactivestreams.tck.SubscriberBlackboxVerification;
import org.reactivestreams.tck.TestEnvironment;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;

/** The publishers written by hand keep the reactive-streams specification, on a real server. */
@DisplayName("GR-1 reactive-streams TCK")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class GrpcCallsTckTest {
  private static final long FAIL = -1;
  private BridgeServer server = start();

  private static BridgeServer start() {
    return new BridgeServer(
        Transport.NETTY,
        reply -> {
          long count = ByteBuffer.wrap(reply.request).getLong();
          if (count == FAIL) {
            reply.close(Status.UNAVAILABLE, new Metadata());
          } else {
            reply.stream(count, 16);
          }
        });
  }

  @AfterAll
  void nothingLeft() {
    server.assertNothingOpen();
    server.close();
  }

  @TestFactory
  Stream<DynamicTest> flux() {
    return Tck.tests(new FluxVerification());
  }

  @TestFactory
  Stream<DynamicTest> mono() {
    return Tck.tests(new MonoVerification());
  }

  @TestFactory
  Stream<DynamicTest> uploadsAnswer() {
    return Tck.tests(new UploadVerification());
  }

  @TestFactory
  Stream<DynamicTest> uploadsSubscriber() {
    return Tck.tests(new UploadSourceVerification());
  }

  @Test
  @DisplayName("the runner runs the methods, and turns red for a publisher that breaks the rules")
  void seenRed() {
    List<String> failed = Tck.failures(new BrokenVerification());
    assertThat(failed)
        .contains(
            "required_spec102_maySignalLessThanRequestedAndTerminateSubscription",
            "required_spec101_subscriptionRequestMustResultInTheCorrectNumberOfProducedElements");
    assertThat(Tck.tests(new FluxVerification()).count()).isGreaterThanOrEqualTo(35);
    assertThat(Tck.failures(new BrokenSubscriberVerification()))
        .contains("required_spec201_blackbox_mustSignalDemandViaSubscriptionRequest");
    assertThat(Tck.tests(new UploadSourceVerification()).count()).isGreaterThanOrEqualTo(20);
  }

  private static byte[] request(long count) {
    return ByteBuffer.allocate(8).putLong(count).array();
  }

  /**
   * Subscribed to without what Reactor puts around a plain Subscriber: it checks requests and
   * serialises signals itself, and would pass these tests for us.
   */
  private static Publisher<byte[]> bare(Publisher<byte[]> publisher) {
    return subscriber -> {
      Objects.requireNonNull(subscriber);
      publisher.subscribe(
          new CoreSubscriber<>() {
            @Override
            public void onSubscribe(Subscription subscription) {
              subscriber.onSubscribe(subscription);
            }

            @Override
            public void onNext(byte[] message) {
              subscriber.onNext(message);
            }

            @Override
            public void onError(Throwable error) {
              subscriber.onError(error);
            }

            @Override
            public void onComplete() {
              subscriber.onComplete();
            }
          });
    };
  }

  private class FluxVerification extends PublisherVerification<byte[]> {
    FluxVerification() {
      super(new TestEnvironment(10_000, 150, 50), 10_000);
    }

    @Override
    public Publisher<byte[]> createPublisher(long elements) {
      return bare(
          GrpcCalls.serverStreaming(
              server.channel, STREAM, CallOptions.DEFAULT, request(elements)));
    }

    @Override
    public Publisher<byte[]> createFailedPublisher() {
      return createPublisher(FAIL);
    }
  }

  private final class MonoVerification extends FluxVerification {
    @Override
    public Publisher<byte[]> createPublisher(long elements) {
      return bare(GrpcCalls.unary(server.channel, UNARY, CallOptions.DEFAULT, request(elements)));
    }

    @Override
    public long maxElementsFromPublisher() {
      return 1;
    }
  }

  private final class UploadVerification extends FluxVerification {
    @Override
    public Publisher<byte[]> createPublisher(long elements) {
      return bare(
          GrpcCalls.clientStreaming(
              server.channel,
              COLLECT,
              CallOptions.DEFAULT,
              Flux.just(request(0), request(elements))));
    }

    @Override
    public long maxElementsFromPublisher() {
      return 1;
    }
  }

  /** What an upload subscribes to its source with. */
  private static final class UploadSourceVerification
      extends SubscriberBlackboxVerification<byte[]> {
    UploadSourceVerification() {
      super(new TestEnvironment(1_000, 150, 50));
    }

    @Override
    public Subscriber<byte[]> createSubscriber() {
      AtomicReference<Subscriber<byte[]>> subscriber = new AtomicReference<>();
      @SuppressWarnings("unchecked")
      Publisher<byte[]> source = s -> subscriber.set((Subscriber<byte[]>) s);
      GrpcCalls.clientStreaming(new FakeCalls(), COLLECT, CallOptions.DEFAULT, source)
          .subscribe(answer -> {}, error -> {});
      return Objects.requireNonNull(subscriber.get());
    }

    @Override
    public byte[] createElement(int element) {
      return request(element);
    }
  }

  /** Sends what it likes, whatever was asked for. */
  private static final class BrokenVerification extends PublisherVerification<byte[]> {
    BrokenVerification() {
      super(new TestEnvironment(100, 50));
    }

    @Override
    public Publisher<byte[]> createPublisher(long elements) {
      return subscriber -> {
        subscriber.onSubscribe(
            new Subscription() {
              @Override
              public void request(long n) {}

              @Override
              public void cancel() {}
            });
        subscriber.onComplete();
      };
    }

    @Override
    public Publisher<byte[]> createFailedPublisher() {
      return createPublisher(0);
    }
  }

  /** Never asks for anything. */
  private static final class BrokenSubscriberVerification
      extends SubscriberBlackboxVerification<byte[]> {
    BrokenSubscriberVerification() {
      super(new TestEnvironment(100, 50));
    }

    @Override
    public Subscriber<byte[]> createSubscriber() {
      return new BaseSubscriber<>() {
        @Override
        protected void hookOnSubscribe(Subscription subscription) {}
      };
    }

    @Override
    public byte[] createElement(int element) {
      return request(element);
    }
  }
}
