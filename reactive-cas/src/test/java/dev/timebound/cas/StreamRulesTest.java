package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasCall;
import dev.timebound.cas.kit.CasEnd;
import dev.timebound.cas.kit.CasScript;
import io.grpc.Metadata;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.util.context.Context;

/** Contents and subscribers that break the rules of Reactive Streams are told so, at once. */
class StreamRulesTest {
  private final TestRing ring = TestRing.of(1, settings -> settings.retries(0));
  private final byte[] content = ring.contentOf(0, 300_000);
  private final Digest digest = Digest.of(content);
  private final AtomicInteger cancelled = new AtomicInteger();

  @AfterEach
  void close() {
    ring.close();
  }

  @Nested
  @DisplayName("CAS-26 a content that breaks a rule")
  class Contents {
    /** What it does when it is asked, with its subscriber at hand. */
    private interface Asked {
      void by(Subscriber<? super ByteBuffer> subscriber, long n);
    }

    private Publisher<ByteBuffer> content(Asked asked) {
      return subscriber ->
          subscriber.onSubscribe(
              new Subscription() {
                @Override
                public void request(long n) {
                  asked.by(subscriber, n);
                }

                @Override
                public void cancel() {
                  cancelled.incrementAndGet();
                }
              });
    }

    private void isRefused(Publisher<ByteBuffer> broken, String why) {
      Throwable failure = failure(ring.ring.write(digest, broken));
      assertThat(failure).isInstanceOf(IllegalStateException.class).hasMessage(why);
      assertThat(cancelled).hasValue(1);
      ring.server(0).writes().awaitCall(1).awaitEnd();
      assertThat(ring.server(0).has(digest)).isFalse();
    }

    @Test
    @DisplayName("CAS-26 request that throws: an IllegalStateException with what it threw")
    void requestThrows() {
      RuntimeException thrown = new UnsupportedOperationException("not now");
      Publisher<ByteBuffer> broken =
          content(
              (subscriber, n) -> {
                throw thrown;
              });
      isRefused(broken, "content: request(1) threw " + thrown);
      assertThat(failure(ring.ring.write(digest, broken))).hasCause(thrown);
    }

    @Test
    @SuppressWarnings("NullAway") // on purpose
    @DisplayName("CAS-26 a null element")
    void nullElement() {
      isRefused(content((subscriber, n) -> subscriber.onNext(null)), "content: gave null");
    }

    @Test
    @DisplayName("CAS-26 more than was asked for, in the midst and by one buffer")
    void ignoresDemand() {
      AtomicInteger given = new AtomicInteger();
      isRefused(
          content(
              (subscriber, n) -> {
                for (int i = 0; i < 30 && given.getAndIncrement() < 30; i++) {
                  subscriber.onNext(ByteBuffer.wrap(content, i * 10_000, 10_000));
                }
                subscriber.onComplete();
              }),
          "content: gave more than was asked for");
    }

    @Test
    @DisplayName("CAS-26 a buffer before anything was asked for")
    void unasked() {
      Publisher<ByteBuffer> eager =
          subscriber -> {
            content((any, n) -> {}).subscribe(subscriber);
            subscriber.onNext(ByteBuffer.wrap(content));
          };
      isRefused(eager, "content: gave more than was asked for");
    }

    @Test
    @DisplayName("CAS-26 one that asks and gives by the rules is none of them")
    void byTheRules() {
      AtomicInteger given = new AtomicInteger();
      Publisher<ByteBuffer> good =
          content(
              (subscriber, n) -> {
                assertThat(n).isEqualTo(1);
                int i = given.getAndIncrement();
                if (i < 30) {
                  subscriber.onNext(ByteBuffer.wrap(content, i * 10_000, 10_000));
                } else {
                  subscriber.onComplete();
                }
              });
      assertThat(ring.ring.write(digest, good).block(LONG)).isNotNull();
      assertThat(ring.server(0).get(digest)).isEqualTo(content);
    }
  }

  @Nested
  @DisplayName("CAS-33 a reader that breaks a rule")
  class Readers {
    /** One of Reactor's own kind, which its operators trust. */
    private final class Asks implements CoreSubscriber<ByteBuffer> {
      private final long first;
      private final long then;
      private final AtomicReference<@Nullable Subscription> read = new AtomicReference<>();
      final CompletableFuture<@Nullable Throwable> end = new CompletableFuture<>();
      final AtomicInteger pieces = new AtomicInteger();

      Asks(long first, long then) {
        this.first = first;
        this.then = then;
      }

      @Override
      public Context currentContext() {
        return Context.of("who", "reader");
      }

      @Override
      public void onSubscribe(Subscription subscription) {
        read.set(subscription);
        subscription.request(first);
      }

      @Override
      public void onNext(ByteBuffer piece) {
        pieces.incrementAndGet();
        Subscription subscription = read.get();
        if (subscription != null) {
          subscription.request(then);
        }
      }

      @Override
      public void onError(Throwable failure) {
        end.complete(failure);
      }

      @Override
      public void onComplete() {
        end.complete(null);
      }

      @Nullable Throwable end() {
        try {
          return end.orTimeout(LONG.toSeconds(), TimeUnit.SECONDS).join();
        } finally {
          Subscription subscription = read.get();
          if (subscription != null) {
            subscription.cancel();
          }
        }
      }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1, Long.MIN_VALUE})
    @DisplayName("CAS-33 asking for none or fewer: IllegalArgumentException (3.9), nothing is sent")
    void fewerThanOne(long n) {
      Asks reader = new Asks(n, 1);
      ring.ring.read(digest).subscribe(reader);
      assertThat(reader.end())
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("3.9");
      assertThat(ring.server(0).calls()).isEmpty();
    }

    @Test
    @DisplayName("CAS-33 in mid-stream too, and the call ends")
    void inMidStream() {
      ring.put(content, 0);
      ring.server(0).reads().next(CasScript.correct().stopAfter(3, CasEnd.silence()));
      Asks reader = new Asks(1, 0);
      ring.ring.read(digest).subscribe(reader);
      assertThat(reader.end()).isInstanceOf(IllegalArgumentException.class);
      assertThat(reader.pieces).hasValue(1);
      assertThat(ring.server(0).reads().awaitCall(1).awaitEnd())
          .isEqualTo(CasCall.End.RESET_BY_CLIENT);
    }

    @Test
    @DisplayName("CAS-33 one that asks by the rules gets all, and its Context is the read's")
    void byTheRules() {
      ring.put(content, 0);
      AtomicReference<@Nullable Object> seen = new AtomicReference<>();
      try (CasRing other =
          CasRing.builder(
                  new CasConfig(List.of(CasConfig.Shard.of("s", ring.server(0).hostAndPort()))))
              .headers(
                  context -> {
                    seen.set(context.get("who"));
                    return new Metadata();
                  })
              .build()) {
        Asks reader = new Asks(1, 1);
        other.read(digest).subscribe(reader);
        assertThat(reader.end()).isNull();
        assertThat(seen).hasValue("reader");
        assertThat(Scannable.from(other.read(digest)).name()).isEqualTo("cas.read");
      }
    }
  }
}
