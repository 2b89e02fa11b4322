package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import dev.timebound.cas.wire.ByteStreams.WriteResponse;
import dev.timebound.deadline.RetryBudget;
import dev.timebound.grpc.CallAttempt;
import dev.timebound.grpc.GrpcCalls;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.scheduler.Scheduler;
import reactor.test.publisher.TestPublisher;
import reactor.test.scheduler.VirtualTimeScheduler;

/** A call whose transport the test plays, a source that it feeds, and the ring's clock. */
@DisplayName("CAS-3 whose turn it is in an upload, and for how long")
class UploadWatchTest {
  private static final Duration GAP = Duration.ofSeconds(10);

  private final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  private final CallAttempt attempt = CallAttempt.create();
  private final TestPublisher<WriteRequest> source = TestPublisher.create();
  private final Call call = new Call();
  private final AtomicReference<@Nullable Throwable> stalled = new AtomicReference<>();
  private Disposable running = () -> {};
  private Disposable watching = () -> {};

  /** Of an upload to a shard that there is not; it has one limit for all but the answer. */
  static UploadWatch watch(
      Duration rpcTimeout, Duration gap, Scheduler timers, CallAttempt attempt) {
    RingSettings settings =
        new RingSettings(
            "cas",
            DigestFunction.SHA256,
            rpcTimeout,
            gap,
            gap,
            gap,
            gap,
            false,
            3,
            RetryBudget.create(),
            1,
            false,
            1,
            timers);
    ShardConnection none =
        new ShardConnection(
            CasConfig.Shard.of("s0", "127.0.0.1:1"),
            settings,
            endpoint -> {
              throw new UnsupportedOperationException();
            },
            Runnable::run,
            CasMeters.of(null, "cas"));
    return new UploadWatch(new Shard(0, "s0", "", none), settings, attempt, new CallStage());
  }

  @BeforeEach
  void start() {
    start(Duration.ofSeconds(30));
  }

  private void start(Duration rpcTimeout) {
    watching.dispose();
    UploadWatch watch = watch(rpcTimeout, GAP, time, attempt);
    if (!source.wasSubscribed()) {
      running =
          GrpcCalls.clientStreaming(
                  new Channel() {
                    @Override
                    @SuppressWarnings("unchecked")
                    public <Q, R> ClientCall<Q, R> newCall(
                        MethodDescriptor<Q, R> method, CallOptions options) {
                      return (ClientCall<Q, R>) call;
                    }

                    @Override
                    public String authority() {
                      return "fake";
                    }
                  },
                  ByteStreamGrpc.getWriteMethod(),
                  CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt),
                  source)
              .subscribe();
    }
    completion = watch::complete;
    watching = watch.stalled().subscribe(nothing -> {}, stalled::set);
  }

  private Runnable completion = () -> {};

  @AfterEach
  void stop() {
    watching.dispose();
    running.dispose();
    time.dispose();
  }

  private void piece() {
    source.next(WriteRequest.getDefaultInstance());
  }

  private void pass(Duration by) {
    for (long s = 0; s < by.toSeconds(); s++) {
      time.advanceTimeBy(Duration.ofSeconds(1));
    }
  }

  @Test
  @DisplayName("CAS-3 a server that takes nothing for gapTimeout has stalled, no sooner")
  void takesNothing() {
    call.takes(1);
    piece();
    piece();
    pass(Duration.ofSeconds(9));
    assertThat(stalled).hasValue(null);
    pass(Duration.ofSeconds(4));
    assertThat(stalled.get())
        .isInstanceOf(StatusRuntimeException.class)
        .hasMessage("DEADLINE_EXCEEDED: s0: took nothing of an upload for PT10S");
  }

  @Test
  @DisplayName("CAS-3 content that is slow is no stall")
  void slowContent() {
    pass(Duration.ofHours(1));
    piece();
    pass(Duration.ofHours(1));
    piece();
    pass(Duration.ofHours(1));
    assertThat(stalled).hasValue(null);
  }

  @Test
  @DisplayName("CAS-3 each piece that is taken begins the gap anew, however long it all takes")
  void moves() {
    call.takes(1);
    piece();
    for (int i = 0; i < 100; i++) {
      pass(Duration.ofSeconds(9));
      call.takes(1);
      piece();
    }
    assertThat(stalled).hasValue(null);
    pass(Duration.ofSeconds(13));
    assertThat(stalled.get()).isNotNull();
  }

  @Test
  @DisplayName("CAS-3 once all is sent the answer has rpcTimeout, not the gap")
  void answer() {
    piece();
    completion.run();
    source.complete();
    pass(Duration.ofSeconds(29));
    assertThat(stalled).hasValue(null);
    pass(Duration.ofSeconds(4));
    assertThat(stalled.get())
        .hasMessage("DEADLINE_EXCEEDED: s0: no answer to an upload within PT30S");
  }

  @Test
  @DisplayName("CAS-3 without an rpcTimeout the answer has all the time there is")
  void noRpcTimeout() {
    start(Duration.ZERO);
    piece();
    completion.run();
    source.complete();
    pass(Duration.ofHours(10));
    assertThat(stalled).hasValue(null);
  }

  /** Ready for as many messages as the test says. */
  private static final class Call extends ClientCall<WriteRequest, WriteResponse> {
    private int room = Integer.MAX_VALUE;
    private @Nullable Listener<WriteResponse> listener;

    void takes(int more) {
      room = more;
      Listener<WriteResponse> l = listener;
      if (l != null) {
        l.onReady();
      }
    }

    @Override
    public void start(Listener<WriteResponse> listener, Metadata headers) {
      this.listener = listener;
    }

    @Override
    public boolean isReady() {
      return room > 0;
    }

    @Override
    public void sendMessage(WriteRequest message) {
      room--;
    }

    @Override
    public void request(int messages) {}

    @Override
    public void cancel(@Nullable String message, @Nullable Throwable cause) {}

    @Override
    public void halfClose() {}
  }
}
