package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.REQUEST;
import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;
import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** A caller waits only while it has asked and has nothing at hand. */
@DisplayName("BT-11 when a caller waits")
class WaitSignalsTest {
  private final FakeCalls fake = new FakeCalls();
  private final Probe<byte[]> probe = new Probe<>();
  private final CallAttempt attempt = CallAttempt.create();
  private RecordingClaim<?> claim = RecordingClaim.on(attempt);

  private CallOptions options() {
    return CallOptions.DEFAULT.withOption(CallAttempt.KEY, attempt);
  }

  @Nested
  @DisplayName("BT-11 a stream")
  class OfAStream {
    @BeforeEach
    void subscribe() {
      GrpcCalls.serverStreaming(fake, STREAM, options(), REQUEST).subscribe(probe);
    }

    @Test
    @DisplayName("BT-11 the attempt given in the options is the one that is told")
    void given() {
      assertThat(fake.only().options.getOption(CallAttempt.KEY)).isSameAs(attempt);
    }

    @Test
    @DisplayName("BT-11 never waits while nobody asks")
    void unasked() {
      fake.only().close(Status.OK);
      assertThat(claim.log).isEmpty();
    }

    @Test
    @DisplayName("BT-11 waits from the request on, not while it handles a message, then again")
    void busyDoesNotWait() {
      List<Boolean> whileBusy = new ArrayList<>();
      probe.onEach = p -> whileBusy.add(claim.waits);
      probe.request(2);
      assertThat(claim.waits).isTrue();
      fake.only().deliver(REQUEST);
      assertThat(claim.waits).as("asked for one more").isTrue();
      fake.only().deliver(REQUEST);
      assertThat(whileBusy).containsExactly(false, false);
      assertThat(claim.waits).as("asks for nothing now").isFalse();
      assertThat(claim.log).containsExactly("waiting", "idle", "waiting", "idle");
    }

    @Test
    @DisplayName("BT-11 does not wait for what it holds already")
    void atHand() {
      probe.request(1);
      fake.only().deliver(REQUEST);
      fake.only().deliver(REQUEST);
      assertThat(claim.waits).isFalse();
      probe.request(1);
      assertThat(probe.got).hasSize(2);
      assertThat(claim.log).as("no wait for the one at hand").containsExactly("waiting", "idle");
    }

    @Test
    @DisplayName("BT-11 asking again while it waits is one wait")
    void oneWait() {
      probe.request(1);
      probe.request(1);
      probe.request(5);
      assertThat(claim.log).containsExactly("waiting");
    }

    @Test
    @DisplayName("BT-11 waits no more after the end, an error and a cancel")
    void ends() {
      probe.request(1);
      fake.only().close(Status.UNAVAILABLE);
      assertThat(claim.log).containsExactly("waiting", "idle");
    }

    @Test
    @DisplayName("BT-11 waits no more after a cancel, nor for a request after it")
    void cancelled() {
      probe.request(1);
      probe.cancel();
      probe.request(1);
      assertThat(claim.log).containsExactly("waiting", "idle");
    }

    @Test
    @DisplayName("BT-11 a subscriber that cancels in onNext does not wait after it")
    void cancelsInOnNext() {
      probe.onEach = Probe::cancel;
      probe.request(10);
      fake.only().deliver(REQUEST);
      assertThat(claim.waits).isFalse();
    }
  }

  @Nested
  @DisplayName("BT-11 a unary call")
  class OfAUnaryCall {
    @BeforeEach
    void subscribe() {
      GrpcCalls.unary(fake, UNARY, options(), REQUEST).subscribe(probe);
    }

    @Test
    @DisplayName("BT-11 waits from its request to its end, and not while it handles the answer")
    void answer() {
      List<Boolean> whileBusy = new ArrayList<>();
      probe.onEach = p -> whileBusy.add(claim.waits);
      assertThat(claim.log).isEmpty();
      probe.request(1);
      assertThat(claim.waits).isTrue();
      fake.only().deliver(REQUEST);
      assertThat(claim.waits).as("the status is still to come").isTrue();
      fake.only().close(Status.OK);
      assertThat(whileBusy).containsExactly(false);
      assertThat(claim.log).containsExactly("waiting", "idle");
    }

    @Test
    @DisplayName("BT-11 waits no more after a cancel")
    void cancelled() {
      probe.request(1);
      probe.cancel();
      assertThat(claim.log).containsExactly("waiting", "idle");
    }
  }

  @Test
  @DisplayName("BT-11 a call that could not be started never waits")
  void notStarted() {
    fake.onStart = new IllegalStateException("no start");
    probe.onSubscribed = p -> p.request(1);
    GrpcCalls.serverStreaming(fake, STREAM, options(), REQUEST).subscribe(probe);
    assertThat(probe.error).hasMessage("no start");
    assertThat(claim.log).isEmpty();
  }

  @Test
  @DisplayName("BT-11 a wait that began before the headers went out counts from then")
  void headersLater() {
    CallAttempt queued = CallAttempt.create();
    GrpcCalls.serverStreaming(
            fake, STREAM, CallOptions.DEFAULT.withOption(CallAttempt.KEY, queued), REQUEST)
        .subscribe(probe);
    probe.request(1);
    claim = RecordingClaim.on(queued);
    assertThat(claim.log).containsExactly("waiting");
  }
}
