package dev.timebound.bigtable;

import static dev.timebound.bigtable.Eventually.eventually;
import static dev.timebound.bigtable.Scripted.HOUR;
import static dev.timebound.bigtable.Scripted.letPass;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.protobuf.ByteString;
import dev.timebound.test.Rows;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedCall;
import dev.timebound.test.ScriptedCall.End;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("BT-37 BT-40 BT-42 demand, and what is held ahead of it")
class ReadDemandTest {
  private static final Duration SETTLED = Duration.ofMillis(300);
  private static final int DEFAULT_WINDOW = 256 << 10;

  private static Scripted start() {
    return Scripted.start(settings -> settings.gapTimeout(HOUR));
  }

  /** Rows without end, each a message of its own with a value of that size. */
  static Script endless(int bytes) {
    ByteString value = ByteString.copyFrom(new byte[bytes]);
    Iterable<ReadRowsResponse> rows =
        () ->
            Stream.iterate(0, i -> i + 1)
                .map(i -> Rows.message(Rows.row(Scripted.key(i), value)))
                .iterator();
    return Script.start().messages(rows);
  }

  /** What the server has pushed, once it pushes no more. */
  private static long settled(ScriptedCall call) {
    long[] seen = {-1};
    eventually(
        () -> {
          long before = seen[0];
          seen[0] = call.bytesPushed();
          letPass(SETTLED);
          assertThat(seen[0]).isEqualTo(before);
        });
    return seen[0];
  }

  @Test
  @DisplayName(
      "BT-40 BT-42 an unread stream makes the server send its window, 256 KiB, and no more")
  void unread() {
    try (Scripted reads = start()) {
      reads.server.readRows().always(endless(10_000));
      Reader reader = reads.unread();
      ScriptedCall call = reads.calls().get(0);
      call.awaitBytesPushed(DEFAULT_WINDOW);
      assertThat(settled(call)).isEqualTo(DEFAULT_WINDOW);
      reader.cancel();
      call.awaitEnd(End.RESET_BY_CLIENT);
    }
  }

  @Test
  @DisplayName(
      "BT-40 the window is fixed: it does not grow with what has been read on its connection")
  void fixed() {
    try (Scripted reads =
        Scripted.start(settings -> settings.gapTimeout(HOUR).pool(pool -> pool.fixedChannels(1)))) {
      reads.server.readRows().always(endless(50_000));
      Reader reader = Reader.of(reads.all().take(400), Long.MAX_VALUE);
      assertThat(reader.awaitComplete()).hasSize(400);
      Reader unread = reads.unread();
      ScriptedCall call = reads.calls().get(1);
      call.awaitBytesPushed(DEFAULT_WINDOW);
      assertThat(settled(call)).isEqualTo(DEFAULT_WINDOW);
      unread.cancel();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {20_000, 65_535, 1_000_000})
  @DisplayName("BT-40 the window is a setting, seen at the server")
  void setting(int window) {
    try (Scripted reads =
        Scripted.start(settings -> settings.gapTimeout(HOUR).streamWindowBytes(window))) {
      reads.server.readRows().always(endless(10_000));
      Reader reader = reads.unread();
      ScriptedCall call = reads.calls().get(0);
      call.awaitBytesPushed(window);
      assertThat(settled(call)).isEqualTo(window);
      reader.cancel();
    }
  }

  @Test
  @DisplayName("BT-42 many unread streams: no more than streams times window")
  void manyUnread() {
    int streams = 40;
    int window = 64 << 10;
    try (Scripted reads =
        Scripted.start(settings -> settings.gapTimeout(HOUR).streamWindowBytes(window))) {
      reads.server.readRows().always(endless(5_000));
      List<Reader> readers = new ArrayList<>();
      for (int i = 0; i < streams; i++) {
        readers.add(reads.unread());
      }
      reads.calls().forEach(call -> call.awaitBytesPushed(window));
      letPass(SETTLED);
      assertThat(reads.calls()).allMatch(call -> call.bytesPushed() == window);
      readers.forEach(Reader::cancel);
    }
  }

  @Test
  @DisplayName(
      "BT-37 BT-42 with demand for n rows no more than a window and what is asked ahead is sent")
  void demandOfN() {
    int bytes = 1_000;
    try (Scripted reads = start()) {
      reads.server.readRows().always(endless(bytes));
      Reader reader = Reader.of(reads.all(), 5);
      reader.awaitRows(5);
      ScriptedCall call = reads.calls().get(0);
      long pushed = settled(call);
      assertThat(reader.keys()).hasSize(5);
      // At most 32 messages are asked for ahead, and the bytes of both are bounded.
      assertThat(pushed).isLessThanOrEqualTo(DEFAULT_WINDOW + 40L * (bytes + 100));
      reader.request(100);
      reader.awaitRows(105);
      assertThat(settled(call) - pushed).isLessThanOrEqualTo(140L * (bytes + 100) + DEFAULT_WINDOW);
      assertThat(reader.keys()).containsExactly(Scripted.keys(0, 105));
      reader.cancel();
    }
  }

  @Test
  @DisplayName("BT-42 what is asked for ahead is bounded by bytes: large messages, few of them")
  void largeMessages() {
    int bytes = 200_000;
    try (Scripted reads = start()) {
      reads.server.readRows().always(endless(bytes));
      Reader reader = Reader.of(reads.all(), 50);
      reader.awaitRows(50);
      // The first two, before a size is known; from then on one at a time.
      assertThat(settled(reads.calls().get(0)))
          .isLessThanOrEqualTo(52L * (bytes + 100) + DEFAULT_WINDOW);
      reader.cancel();
    }
  }

  @Test
  @DisplayName(
      "BT-37 the rows of one message are handed on as they are asked for, the rest is kept")
  void oneMessage() {
    List<Row> discarded = new CopyOnWriteArrayList<>();
    try (Scripted reads = start()) {
      reads.server.readRows().always(Script.start().rows(Scripted.keys(0, 100)).silence());
      Reader reader = Reader.of(reads.all().doOnDiscard(Row.class, discarded::add), 10);
      reader.awaitRows(10);
      letPass(SETTLED);
      assertThat(reader.keys()).hasSize(10);
      reader.request(1);
      reader.awaitRows(11);
      reader.cancel();
      // What was at hand and not delivered is told to whoever cares.
      eventually(() -> assertThat(discarded).hasSize(89));
    }
  }

  @Test
  @DisplayName("BT-37 demand from within onNext, one at a time, and without bound in the middle")
  void demandFromWithin() {
    try (Scripted reads = start()) {
      reads.server.readRows().always(Scripted.rows(Script.start(), 0, 300, 7).ok());
      Reader[] self = new Reader[1];
      Reader reader =
          Reader.of(
              reads.all(),
              0,
              row ->
                  self[0].request(
                      row.key().toStringUtf8().equals(Scripted.key(150)) ? Long.MAX_VALUE : 1));
      self[0] = reader;
      reader.request(1);
      assertThat(reader.awaitComplete()).containsExactly(Scripted.keys(0, 300));
    }
  }

  @Test
  @DisplayName(
      "BT-37 on the event loop itself, where the user chose so: a long scan, one row a message")
  void onTheLoop() {
    try (Scripted reads =
        Scripted.start(settings -> settings.gapTimeout(HOUR).deliverOn(Runnable::run))) {
      reads.server.readRows().always(endless(10));
      List<String> threads = new CopyOnWriteArrayList<>();
      Reader reader =
          Reader.of(
              reads.all().take(20_000),
              Long.MAX_VALUE,
              row -> {
                String name = Thread.currentThread().getName();
                if (!threads.contains(name)) {
                  threads.add(name);
                }
              });
      assertThat(reader.awaitComplete()).hasSize(20_000);
      // What is at hand when downstream asks may be handed over by the thread that asks.
      String asking = Thread.currentThread().getName();
      assertThat(threads)
          .anyMatch(name -> name.startsWith("timebound-bigtable-io"))
          .allMatch(name -> name.startsWith("timebound-bigtable-io") || name.equals(asking));
    }
  }

  @Test
  @DisplayName("BT-37 a request for nothing is an error, and leaves no call")
  void badRequest() {
    try (Scripted reads = start()) {
      reads.server.readRows().always(endless(100));
      List<Throwable> errors = new CopyOnWriteArrayList<>();
      reads
          .all()
          .subscribe(
              new reactor.core.CoreSubscriber<Row>() {
                @Override
                public void onSubscribe(org.reactivestreams.Subscription s) {
                  s.request(-1);
                }

                @Override
                public void onNext(Row row) {}

                @Override
                public void onError(Throwable t) {
                  errors.add(t);
                }

                @Override
                public void onComplete() {}
              });
      eventually(() -> assertThat(errors).hasSize(1));
      assertThat(errors.get(0))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("3.9");
    }
  }

  @Test
  @DisplayName(
      "a read that is cancelled while it is subscribed to makes no call and leaves no timer")
  void cancelledInOnSubscribe() {
    try (Scripted reads = start()) {
      reads.server.readRows().always(endless(100));
      assertThat(Reader.of(reads.all().take(0), 1).awaitComplete()).isEmpty();
      Reader reader = Reader.of(reads.all().doOnSubscribe(s -> s.cancel()), 1);
      assertThat(reader.keys()).isEmpty();
      eventually(() -> assertThat(reads.client.isIdle()).isTrue());
      assertThat(reads.calls()).isEmpty();
    }
  }

  @Test
  @DisplayName("BT-37 a cancel reaches the server at once, though the subscriber is in its onNext")
  void cancelWhileBlocked() throws Exception {
    java.util.concurrent.CountDownLatch release = new java.util.concurrent.CountDownLatch(1);
    try (Scripted reads = start()) {
      reads.server.readRows().always(endless(100));
      Reader reader =
          Reader.of(
              reads.all(),
              0,
              row -> {
                try {
                  release.await();
                } catch (InterruptedException e) {
                  Thread.currentThread().interrupt();
                }
              });
      // rows that have come already are handed on by the thread that asks
      Thread asks = new Thread(() -> reader.request(Long.MAX_VALUE), "asks");
      asks.start();
      reader.awaitRows(1);
      reader.cancel();
      reads.calls().get(0).awaitEnd(End.RESET_BY_CLIENT);
      assertThat(reads.client.pool().inFlight()).isZero();
      release.countDown();
      asks.join();
    }
  }

  @Test
  @DisplayName("BT-45 a row of 5 MB is read; gRPC's own limit of 4 MiB would refuse it")
  void largeRow() {
    ByteString value = ByteString.copyFrom(new byte[5_000_000]);
    Script script = Script.start().message(Rows.message(Rows.row("big", value))).ok();
    try (Scripted reads = start()) {
      reads.server.readRows().always(script);
      List<Row> rows = reads.all().collectList().block(Scripted.BOUND);
      assertThat(rows).hasSize(1);
      assertThat(rows.get(0).cells().get(0).value()).isEqualTo(value);
    }
    try (Scripted reads =
        Scripted.start(settings -> settings.gapTimeout(HOUR).maxInboundMessageBytes(4 << 20))) {
      reads.server.readRows().always(script);
      Status status = Status.fromThrowable(reads.read().awaitError());
      assertThat(status.getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
      // The same message would come again, and the channel works.
      assertThat(reads.calls()).hasSize(1);
      assertThat(reads.penalties()).containsExactly(0, 0);
    }
  }
}
