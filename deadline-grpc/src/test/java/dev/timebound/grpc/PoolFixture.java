package dev.timebound.grpc;

import dev.timebound.health.FailureKind;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.test.scheduler.VirtualTimeScheduler;

/** A pool over fake channels in virtual time; each probe's answer is the test's to give. */
final class PoolFixture implements AutoCloseable {
  final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  final List<FakeChannel> fakes = new CopyOnWriteArrayList<>();
  final List<ConnectionWatch> watches = new CopyOnWriteArrayList<>();
  final Probes probes = new Probes();

  /** Before the pool has it. */
  volatile Consumer<FakeChannel> onMade;

  final ChannelPool pool;

  PoolFixture(UnaryOperator<ChannelPoolBuilder> settings) {
    this(settings, fake -> {});
  }

  PoolFixture(UnaryOperator<ChannelPoolBuilder> settings, Consumer<FakeChannel> onMade) {
    this.onMade = onMade;
    ChannelPoolBuilder builder =
        ChannelPool.builder(
                watch -> {
                  watches.add(watch);
                  FakeChannel fake = new FakeChannel();
                  this.onMade.accept(fake);
                  fakes.add(fake);
                  return fake;
                },
                probes)
            .name("test")
            .warming(false)
            .random(() -> 0)
            .scheduler(time);
    pool = settings.apply(builder).build();
  }

  static PoolFixture ofSize(int channels) {
    return new PoolFixture(b -> b.fixedChannels(channels));
  }

  /** A call with an attempt of its own, as the bridge makes one. */
  TestCall call(String... avoid) {
    return new TestCall(this, CallAttempt.avoiding(java.util.Set.of(avoid)), true);
  }

  /** A call as a plain stub makes it. */
  TestCall plainCall() {
    return new TestCall(this, CallAttempt.create(), false);
  }

  /** A call that lands on that very channel: all others are avoided. */
  TestCall callOn(int channel) {
    List<String> others = new ArrayList<>();
    for (MemberHealth member : pool.channels()) {
      if (!member.name().equals(name(channel))) {
        others.add(member.name());
      }
    }
    return call(others.toArray(new String[0]));
  }

  /** Name of the n-th channel made, counted from 1. */
  static String name(int channel) {
    return "test-" + channel;
  }

  PooledChannel member(int channel) {
    PooledChannel member = pool.member(name(channel));
    if (member == null) {
      throw new AssertionError("not in the pool: " + name(channel));
    }
    return member;
  }

  MemberStatus status(int channel) {
    return health(channel).status();
  }

  MemberHealth health(int channel) {
    return pool.channels().stream()
        .filter(member -> member.name().equals(name(channel)))
        .findFirst()
        .orElseThrow(() -> new AssertionError("not in the pool: " + name(channel)));
  }

  void pass(Duration time) {
    this.time.advanceTimeBy(time);
  }

  /** Time passes while the given calls receive something every 100 ms. */
  void passWith(Duration time, TestCall... receiving) {
    long steps = time.toMillis() / 100;
    for (long i = 0; i < steps; i++) {
      for (TestCall call : receiving) {
        call.transport().bytesCome();
      }
      this.time.advanceTimeBy(Duration.ofMillis(100));
    }
  }

  @Override
  public void close() {
    pool.close();
    time.dispose();
  }

  /** A started call and what its listener was told. */
  static final class TestCall {
    final CallAttempt attempt;
    private final ClientCall<byte[], byte[]> call;
    private final PoolFixture fixture;
    private final int channelIndex;
    private final int callIndex;
    volatile @Nullable Status closed;
    volatile int closes;
    int messages;

    TestCall(PoolFixture fixture, CallAttempt attempt, boolean withAttempt) {
      this.fixture = fixture;
      this.attempt = attempt;
      CallOptions options =
          withAttempt
              ? CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt)
              : CallOptions.DEFAULT;
      List<Integer> before = new ArrayList<>();
      fixture.fakes.forEach(fake -> before.add(fake.calls.size()));
      call = fixture.pool.newCall(FakeChannel.METHOD, options);
      call.start(
          new ClientCall.Listener<byte[]>() {
            @Override
            public void onMessage(byte[] message) {
              messages++;
            }

            @Override
            public void onClose(Status status, Metadata trailers) {
              closes = closes + 1;
              closed = status;
            }
          },
          new Metadata());
      int found = -1;
      for (int i = 0; i < before.size(); i++) {
        if (fixture.fakes.get(i).calls.size() > before.get(i)) {
          found = i;
        }
      }
      channelIndex = found;
      callIndex = found < 0 ? -1 : fixture.fakes.get(found).calls.size() - 1;
    }

    /** Number of the channel it went to, counted from 1. */
    int channel() {
      return channelIndex + 1;
    }

    FakeChannel.FakeCall<?, ?> transport() {
      return fixture.fakes.get(channelIndex).calls.get(callIndex);
    }

    /** Its headers have gone out and its caller waits. */
    TestCall sentAndWaiting() {
      transport().headersSent();
      attempt.waiting();
      return this;
    }

    TestCall sent() {
      transport().headersSent();
      return this;
    }

    /** How it was closed; fails where it is still open. */
    Status ended() {
      Status status = closed;
      if (status == null) {
        throw new AssertionError("the call is still open");
      }
      return status;
    }

    void request(int n) {
      call.request(n);
    }

    void cancel() {
      call.cancel("by the test", null);
    }

    boolean gapTimeout() {
      return attempt.failed(FailureKind.CONNECTION, new RuntimeException("gap"));
    }
  }

  /** Probes by channel: silent unless told otherwise. */
  static final class Probes implements ChannelProbe {
    final Map<Channel, Mono<?>> answers = new ConcurrentHashMap<>();
    final List<Metadata> sent = new CopyOnWriteArrayList<>();
    volatile Mono<Metadata> credentials = Mono.fromSupplier(Metadata::new);
    volatile Mono<?> answer = Sinks.empty().asMono();
    volatile int cancelled;

    @Override
    public Mono<Metadata> prepare() {
      return Mono.defer(() -> credentials);
    }

    @Override
    public Mono<?> call(Channel channel, Metadata headers) {
      return Mono.defer(
              () -> {
                sent.add(headers);
                return answer;
              })
          .doOnCancel(() -> cancelled++);
    }

    void answered() {
      answer = Mono.just("pong");
    }

    void silent() {
      answer = Sinks.empty().asMono();
    }

    void connectionFails() {
      answer = Mono.error(Status.UNAVAILABLE.withDescription("io exception").asRuntimeException());
    }
  }
}
