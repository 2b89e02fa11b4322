package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.test.FaultProxy;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.Channel;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.message.backend.DataRow;
import io.r2dbc.spi.Result;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxSink;
import reactor.util.context.Context;

/** What the driver and Reactor Netty received, counted to the byte in an allocator of its own. */
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-19 a connection that is closed with rows in flight leaves no buffer behind")
class ClosedUnderRowsTest {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  /** More than the driver and Reactor Netty ask for while nobody takes them. */
  private static final String ROWS =
      "SELECT n || repeat('x', 20) FROM generate_series(1, 5000) n WHERE n > %s";

  private final FaultProxy proxy;
  private final UnpooledByteBufAllocator received = new UnpooledByteBufAllocator(true);
  private Channel channel;
  private ReaderConnection connection;

  ClosedUnderRowsTest(PostgresReplicaSet servers) {
    this.proxy = servers.standby().proxy();
  }

  @BeforeEach
  void dial() {
    Dialler dialler =
        new Dialler(
            "reader",
            () ->
                PostgresqlConnectionConfiguration.builder()
                    .host("127.0.0.1")
                    .port(proxy.port())
                    .username("postgres")
                    .database("postgres"),
            ReaderPools.settings(it -> it));
    Sockets sockets = dialler.sockets();
    connection = requireNonNull(dialler.dial(sockets).block(PATIENCE));
    channel = requireNonNull(sockets.newest());
    channel.config().setAllocator(received);
  }

  @AfterEach
  void close() {
    connection.closeNow();
    proxy.close();
  }

  private long held() {
    return received.metric().usedDirectMemory() + received.metric().usedHeapMemory();
  }

  private void nothingIsHeld() {
    eventually(() -> assertThat(channel.isRegistered()).isFalse());
    eventually(() -> assertThat(held()).as("bytes held").isZero());
  }

  /** Takes one row; the server has sent more of them and is frozen then. */
  private Taker frozenBehindOneRow(String where, UnaryOperator<Result> seen) {
    // the server sends what fills its buffer, which ends within a row; a notice sends the rest too
    String sql =
        switch (where) {
          case "in mid-row" -> ROWS.formatted("0") + " UNION ALL SELECT pg_sleep(600)::text";
          case "between rows" ->
              ROWS.formatted("0")
                  + "; DO $$ BEGIN RAISE NOTICE 'sent'; PERFORM pg_sleep(600); END $$";
          default -> ROWS.formatted("$1") + " UNION ALL SELECT pg_sleep(600)::text";
        };
    RecordedStatement statement =
        new RecordedStatement(
            sql,
            what ->
                Drained.results(what, connection.driver())
                    .map(result -> DrainedResult.of(result, what)));
    if (sql.contains("$1")) {
      statement.bind(0, 0);
    }
    Taker taker = new Taker();
    Flux.<Result>from(statement.execute())
        .concatMap(r -> seen.apply(r).map((row, metadata) -> String.valueOf(row.get(0))))
        .contextWrite(Quiet::in)
        .subscribe(taker);
    eventually(() -> assertThat(taker.seen).hasValue(1));
    eventually(() -> assertThat(held()).as("bytes held").isGreaterThan(4_000)); // 100 rows and more
    proxy.freezeEstablished();
    return taker;
  }

  @ParameterizedTest(name = "{0}, {1}")
  @CsvSource({
    "in mid-row, cancelled",
    "between rows, cancelled",
    "with a parameter, cancelled",
    "in mid-row, closed",
    "between rows, closed"
  })
  @DisplayName("PG-19 its caller left, and the server did not answer the cancel")
  void left(String where, String how) {
    frozenBehindOneRow(where, result -> result).cancel();
    if (how.equals("cancelled")) {
      connection.cancelAndClose();
    } else {
      connection.closeNow();
    }
    nothingIsHeld();
  }

  @ParameterizedTest(name = "{0}, {1}")
  @CsvSource({
    "in mid-row, closed",
    "between rows, closed",
    "with a parameter, closed",
    "in mid-row, reset",
    "in mid-row, cancelled"
  })
  @DisplayName("PG-19 its caller has not asked for them yet")
  void notAskedFor(String where, String how) {
    Taker taker = frozenBehindOneRow(where, result -> result);
    switch (how) {
      case "closed" -> connection.closeNow();
      case "cancelled" -> connection.cancelAndClose();
      default -> proxy.cut();
    }
    eventually(() -> assertThat(channel.isRegistered()).isFalse());
    taker.cancel();
    nothingIsHeld();
  }

  @ParameterizedTest
  @ValueSource(strings = {"in mid-row", "between rows"})
  @DisplayName("PG-19 its caller has left, and the rows are still being let go")
  void stillLettingGo(String where) throws InterruptedException {
    CountDownLatch busy = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    AtomicInteger rows = new AtomicInteger();
    Taker taker =
        frozenBehindOneRow(
            where,
            result ->
                result.filter(
                    segment -> {
                      if (Thread.currentThread().getName().equals("leaves")
                          && rows.incrementAndGet() == 100) {
                        busy.countDown();
                        awaited(closed);
                      }
                      return true;
                    }));
    Thread leaves = new Thread(taker::cancel, "leaves");
    leaves.start();
    busy.await();
    connection.cancelAndClose();
    eventually(() -> assertThat(channel.isOpen()).isFalse());
    closed.countDown();
    leaves.join();
    nothingIsHeld();
  }

  private static void awaited(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  @DisplayName("PG-19 a row that is handed on as the connection is closed is let go, once")
  void dropped() {
    ByteBuf column = Unpooled.buffer();
    ByteBuf callers = Unpooled.buffer();
    DataRow row = new DataRow(column);
    DataRow released = new DataRow(Unpooled.buffer());
    released.release();
    List<Object> seen = new CopyOnWriteArrayList<>();
    Flux.create(
            (FluxSink<Object> sink) -> {
              sink.error(new IllegalStateException("closed"));
              sink.next(row);
              sink.next(released);
              sink.next(callers);
            })
        .contextWrite(Quiet::in)
        .contextWrite(
            Context.of("reactor.onNextDropped.local", (Consumer<Object>) late -> seen.add(late)))
        .onErrorComplete()
        .blockLast(PATIENCE);
    assertThat(row.refCnt()).isZero();
    assertThat(column.refCnt()).isZero();
    assertThat(callers.refCnt()).isEqualTo(1);
    assertThat(seen).containsExactly(callers);
    callers.release();
  }

  private static final class Taker extends BaseSubscriber<String> {
    final AtomicInteger seen = new AtomicInteger();

    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      request(1);
    }

    @Override
    protected void hookOnNext(String value) {
      seen.incrementAndGet();
    }

    @Override
    protected void hookOnError(Throwable closed) {}
  }
}
