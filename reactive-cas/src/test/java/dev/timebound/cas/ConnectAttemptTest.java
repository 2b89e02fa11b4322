package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.Disposables;

@DisplayName("An attempt to connect")
class ConnectAttemptTest {
  private final StateOnly channel = new StateOnly();
  private final List<String> told = new ArrayList<>();

  private final ConnectAttempt attempt =
      new ConnectAttempt(
          new ConnectAttempt.Wish() {
            @Override
            public Disposable later(Runnable step, long nanos) {
              return Disposables.disposed(); // no limit here
            }

            @Override
            public void locked(Runnable step) {
              step.run();
            }

            @Override
            public void connected(ConnectAttempt by) {
              told.add("connected");
            }

            @Override
            public void failed(ConnectAttempt by, Status why) {
              told.add("failed");
            }

            @Override
            public void heldBack(ConnectAttempt by) {}
          },
          new EndpointChannel(
              new RawChannel(channel, () -> Integer.MAX_VALUE),
              "s0 at nowhere",
              1,
              System::nanoTime,
              silent -> {}),
          Duration.ofSeconds(5));

  @Test
  @DisplayName("CAS-1 CAS-2 goes on after a connection that was lost before it was seen")
  void lostUnseen() {
    channel.lost = 2;
    attempt.begin();
    channel.runCallbacks();
    assertThat(told).containsExactly("connected");
    assertThat(channel.asked).isEqualTo(3);
  }

  @Test
  @DisplayName("CAS-2 a connection that is there already is asked for once")
  void atOnce() {
    attempt.begin();
    channel.runCallbacks();
    assertThat(told).containsExactly("connected");
    assertThat(channel.asked).isOne();
  }

  /**
   * A channel with states and nothing else: when it is asked to connect it is connected by the time
   * that the request returns, and the first few connections are lost by then too. It tells of
   * changes later, as gRPC does, through an executor.
   */
  private static final class StateOnly extends ManagedChannel {
    private final Queue<Runnable> callbacks = new ArrayDeque<>();
    private final List<Runnable> listeners = new ArrayList<>();
    private ConnectivityState state = ConnectivityState.IDLE;
    int lost;
    int asked;

    private void becomes(ConnectivityState now) {
      state = now;
      callbacks.addAll(listeners);
      listeners.clear();
    }

    void runCallbacks() {
      Runnable next;
      while ((next = callbacks.poll()) != null) {
        next.run();
      }
    }

    @Override
    public ConnectivityState getState(boolean requestConnection) {
      ConnectivityState before = state;
      if (requestConnection && state == ConnectivityState.IDLE) {
        asked++;
        becomes(ConnectivityState.CONNECTING);
        becomes(ConnectivityState.READY);
        if (lost > 0) {
          lost--;
          becomes(ConnectivityState.IDLE);
        }
      }
      return before;
    }

    @Override
    public void notifyWhenStateChanged(ConnectivityState source, Runnable callback) {
      if (state == source) {
        listeners.add(callback);
      } else {
        callbacks.add(callback);
      }
    }

    @Override
    public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
      throw new UnsupportedOperationException("no calls here");
    }

    @Override
    public String authority() {
      return "nowhere";
    }

    @Override
    public ManagedChannel shutdown() {
      return this;
    }

    @Override
    public boolean isShutdown() {
      return false;
    }

    @Override
    public boolean isTerminated() {
      return false;
    }

    @Override
    public ManagedChannel shutdownNow() {
      return this;
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
      return false;
    }
  }
}
