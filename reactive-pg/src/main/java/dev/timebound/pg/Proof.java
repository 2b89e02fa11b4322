package dev.timebound.pg;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The opening of a read's transaction, on its way: sent at once, so that the user's statement can
 * be sent right behind it, and judged when its answer is there. (PG-10)
 */
final class Proof {
  /** A replica replays in steps of about this. */
  static final Duration POLL_INTERVAL = Duration.ofMillis(20);

  /** What the server said of itself; an error where it proved nothing. */
  private final CompletableFuture<Boolean> standby;

  /** How the comparison of the log's position went, where one was sent. */
  private final @Nullable CompletableFuture<Boolean> position;

  private Proof(@Nullable CompletableFuture<Boolean> position, CompletableFuture<Boolean> standby) {
    this.position = position;
    this.standby = standby;
  }

  static Proof onReader(
      ReaderConnection reader, Fence fence, long number, long statementTimeoutMillis) {
    boolean hides = reader.hidesReplayPosition();
    CompletableFuture<Boolean> position =
        ProofSql.asksPosition(fence, hides)
            ? sent(reader.driver(), ProofSql.position(fence, number))
                .then(Mono.just(true))
                .toFuture()
            : null;
    String batch =
        ProofSql.begin(statementTimeoutMillis) + reader.proofs().sql(fence, number, hides);
    return new Proof(position, answer(reader.driver(), batch).toFuture());
  }

  static Proof onWriter(io.r2dbc.spi.Connection writer, long statementTimeoutMillis) {
    String batch = ProofSql.begin(statementTimeoutMillis) + ProofSql.ROLE;
    return new Proof(null, answer(writer, batch).toFuture());
  }

  /** Whether the server is a standby. Its errors are the server's. */
  Mono<Boolean> verdict() {
    Mono<Boolean> whole = Mono.fromFuture(standby, true);
    Mono<Boolean> verdict =
        position == null
            ? whole
            // first: where the position could not be read the batch says no more than "stale"
            : Mono.fromFuture(position, true)
                .onErrorMap(e -> hides(e) ? new PositionHiddenException(e) : e)
                .then(whole);
    return verdict.contextWrite(Quiet::in);
  }

  /** Aurora refuses the function; a server may also deny it to the reader's role. */
  private static boolean hides(Throwable e) {
    return !SqlStates.isConnection(e);
  }

  static Mono<Void> rollback(io.r2dbc.spi.Connection connection) {
    return sent(connection, "ROLLBACK").then();
  }

  /** Whether the fence holds now, outside a transaction. */
  static Mono<Boolean> poll(ReaderConnection reader, Fence fence) {
    return answer(reader.driver(), ProofSql.poll(fence, reader.hidesReplayPosition()));
  }

  static Mono<Boolean> answer(io.r2dbc.spi.Connection connection, String sql) {
    return Flux.from(connection.createStatement(sql).execute())
        .concatMap(result -> result.map((row, metadata) -> row.get(0, Boolean.class)))
        .last()
        .contextWrite(Quiet::in);
  }

  static Flux<Boolean> sent(io.r2dbc.spi.Connection connection, String sql) {
    return Flux.from(connection.createStatement(sql).execute())
        .concatMap(result -> result.map((row, metadata) -> true))
        .contextWrite(Quiet::in);
  }

  /** The server does not tell how far it has replayed. */
  static final class PositionHiddenException extends RuntimeException {
    private static final long serialVersionUID = 1;

    PositionHiddenException(Throwable cause) {
      super("the server hides its replay position", cause, false, false);
    }
  }
}
