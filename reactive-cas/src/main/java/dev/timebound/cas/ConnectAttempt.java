package dev.timebound.cas;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import reactor.core.Disposable;
import reactor.core.Disposables;

/**
 * One attempt to connect, with its limit, the HTTP/2 handshake included (CAS-2). All of it happens
 * under the lock of the endpoint's host.
 *
 * <p>Connections that are doubted give way to it only once it is connected. They take no calls
 * meanwhile, but not for long: where it has not come about by then, it may be slow where they are
 * not.
 */
final class ConnectAttempt {
  /** Of the connect limit, how long doubted connections are held back. */
  private static final int HELD_BACK = 10;

  /** Who wants to be connected. */
  interface Wish {
    /** Runs it under the lock after that time; never where there are no timers any more. */
    Disposable later(Runnable step, long nanos);

    /** Runs it under the lock. */
    void locked(Runnable step);

    void connected(ConnectAttempt attempt);

    void failed(ConnectAttempt attempt, Status why);

    /** Doubted connections have been held back for long enough. */
    void heldBack(ConnectAttempt attempt);
  }

  private final Wish wish;
  private final EndpointChannel channel;
  private final Duration limit;

  /** Doubted ones that it is to replace. */
  private final List<EndpointChannel> replaces = new ArrayList<>();

  /** Lost ones, calls of which may wait for a connection. */
  private final List<EndpointChannel> follows = new ArrayList<>();

  private Disposable timer = Disposables.disposed();
  private Disposable hold = Disposables.disposed();
  private boolean holds;
  private boolean timedOut;
  private boolean asked;
  private boolean over;

  /**
   * @param channel has not begun to connect
   */
  ConnectAttempt(Wish wish, EndpointChannel channel, Duration limit) {
    this.wish = wish;
    this.channel = channel;
    this.limit = limit;
  }

  EndpointChannel channel() {
    return channel;
  }

  List<EndpointChannel> replaces() {
    return replaces;
  }

  List<EndpointChannel> follows() {
    return follows;
  }

  /** Whether what it replaces takes no calls. */
  boolean holdsBack() {
    return holds;
  }

  /** It failed by its limit: nothing answered it. */
  boolean isTimedOut() {
    return timedOut;
  }

  void begin() {
    timer = wish.later(this::late, limit.toNanos());
    look();
  }

  void replace(EndpointChannel doubted) {
    if (replaces.contains(doubted)) {
      return;
    }
    if (replaces.isEmpty()) {
      holds = true;
      hold =
          wish.later(
              () -> {
                holds = false;
                if (!over) {
                  wish.heldBack(this);
                }
              },
              limit.toNanos() / HELD_BACK);
    }
    replaces.add(doubted);
  }

  void end() {
    over = true;
    timer.dispose();
    hold.dispose();
  }

  private void late() {
    if (over) {
      return;
    }
    if (channel.raw().getState(false) == ConnectivityState.READY) {
      look(); // what the channel tells of it waits for a thread
      return;
    }
    timedOut = true;
    fail("not connected within " + limit + ", HTTP/2 included");
  }

  private void look() {
    if (over) {
      return;
    }
    ConnectivityState state = channel.raw().getState(false);
    switch (state) {
      case READY -> {
        end();
        wish.connected(this);
        return;
      }
      case SHUTDOWN -> {
        fail("the channel was shut down");
        return;
      }
      case TRANSIENT_FAILURE -> askWhy();
      case IDLE, CONNECTING -> {}
    }
    channel.raw().notifyWhenStateChanged(state, () -> wish.locked(this::look));
    if (state == ConnectivityState.IDLE) {
      // Once its changes are heard of: a connection made and lost before that would leave it idle,
      // with nobody to ask for another one.
      channel.raw().getState(true);
    }
  }

  private void fail(String why) {
    failWith(Status.UNAVAILABLE.withDescription(channel.where() + ": " + why));
  }

  private void failWith(Status why) {
    if (!over) {
      end();
      wish.failed(this, why);
    }
  }

  private static Status notConnected(Status status) {
    return Status.UNAVAILABLE.withDescription(status.getDescription()).withCause(status.getCause());
  }

  /** A channel tells why it is not connected only to a call, which fails with it at once. */
  private void askWhy() {
    if (asked) {
      return;
    }
    asked = true;
    ClientCall<Object, Object> call = channel.newCall(Why.METHOD, CallOptions.DEFAULT);
    call.start(
        new ClientCall.Listener<>() {
          @Override
          public void onClose(Status status, Metadata trailers) {
            wish.locked(() -> failWith(notConnected(status)));
          }
        },
        new Metadata());
  }
}
