package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * A connection of the writer's pool, obtained when it is first asked for, until it is given back;
 * behind that nothing is sent on it. Thread-safe.
 */
final class WriterConnection {
  private static final String ENDED = "the transaction has ended: roll it back";

  private final ConnectionFactory writer;
  private final Runnable counted;
  private final Gate gate = new Gate();
  private final AtomicBoolean asked = new AtomicBoolean();
  private final Sinks.One<Connection> arrival = Sinks.one();

  private volatile @Nullable Connection obtained;

  /**
   * @param counted told when it has come
   */
  WriterConnection(ConnectionFactory writer, Runnable counted) {
    this.writer = writer;
    this.counted = counted;
  }

  boolean isAsked() {
    return asked.get();
  }

  boolean isOver() {
    return gate.isOver();
  }

  /** Null before it has come, and when it is over. */
  @Nullable Connection open() {
    return isOver() ? null : obtained;
  }

  Mono<Connection> get() {
    return Mono.deferContextual(
        context -> {
          if (isOver()) {
            return ended();
          }
          if (asked.compareAndSet(false, true)) {
            // not to be cancelled: a pool may lose a connection that comes in that moment, and
            // r2dbc-pool does; one that comes too late goes back at once
            Mono.defer(() -> Mono.<Connection>from(writer.create()))
                .contextWrite(context)
                .subscribe(this::arrived, this::unobtainable);
          }
          return arrival.asMono();
        });
  }

  private void arrived(Connection c) {
    if (gate.send(gate.turn(), () -> obtained = c)) {
      counted.run();
      arrival.tryEmitValue(c);
    } else {
      Mono.from(c.close()).subscribe(null, e -> {});
    }
  }

  private void unobtainable(Throwable e) {
    arrival.tryEmitError(e);
    end(c -> {});
  }

  // --- what is sent, and the end: see Gate

  int turn() {
    return gate.turn();
  }

  boolean nextTurn() {
    return gate.next();
  }

  /** Sent when it is subscribed; an error in its place where that turn is over. */
  <T> Flux<T> sending(int turn, Supplier<? extends Publisher<T>> what) {
    return gate.sending(turn, what, ended());
  }

  /**
   * @param how given the connection, null where there is none yet: one that comes late goes back
   * @return false where it was over before
   */
  boolean end(Consumer<@Nullable Connection> how) {
    return gate.end(
        () -> {
          Connection c = obtained;
          obtained = null;
          if (c == null) {
            arrival.tryEmitError(new IllegalStateException("the connection was given back"));
          }
          how.accept(c);
        });
  }

  private static <T> Mono<T> ended() {
    return Mono.error(() -> new IllegalStateException(ENDED));
  }
}
