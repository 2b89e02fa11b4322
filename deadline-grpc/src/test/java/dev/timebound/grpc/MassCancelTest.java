package dev.timebound.grpc;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.WirePool.Read;
import dev.timebound.health.MemberStatus;
import dev.timebound.health.QuarantinedException;
import dev.timebound.test.Gate;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import dev.timebound.test.ScriptedConnection;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Many calls of one connection cancelled at once, against a server that goes on sending. */
class MassCancelTest {
  private static final int MANY = 1500;
  private static final int DROPPED = 1200;

  /** What the server sends to a stream whose reset is under way. */
  enum Late {
    DATA(Script.start().rows("early"), Script.start().message(rows()).message(rows())),
    HEADERS_AND_DATA(Script.start(), Script.start().headers().message(rows()).message(rows()).ok());

    private final Script before;
    private final Script late;

    Late(Script before, Script late) {
      this.before = before;
      this.late = late;
    }

    private static com.google.bigtable.v2.ReadRowsResponse rows() {
      return com.google.bigtable.v2.ReadRowsResponse.newBuilder()
          .setLastScannedRowKey(com.google.protobuf.ByteString.copyFrom(new byte[200]))
          .build();
    }
  }

  private static WirePool pool(
      ScriptedBigtable server, UnaryOperator<ChannelPoolBuilder> settings) {
    return WirePool.direct(
        server,
        ConnectionLoops.create("timebound-test-io", 2),
        channel -> channel,
        builder -> settings.apply(builder.fixedChannels(2)));
  }

  private static WirePool pool(ScriptedBigtable server) {
    return pool(server, builder -> builder);
  }

  private static List<Read> open(WirePool wire, int reads) {
    List<Read> all = new ArrayList<>();
    for (int i = 0; i < reads; i++) {
      all.add(wire.readOn(1, Long.MAX_VALUE));
    }
    wire.server.awaitOpenStreams(reads);
    return all;
  }

  private static ScriptedConnection connection(WirePool wire) {
    int id = wire.server.readRows().awaitCall(1).connection();
    return wire.server.connections().stream()
        .filter(connection -> connection.id() == id)
        .findFirst()
        .orElseThrow();
  }

  /** The connection lives: no GOAWAY on it, and it answers a probe and serves a new stream. */
  private static void lives(WirePool wire, ScriptedConnection connection, int streams) {
    assertThat(connection.isOpen()).isTrue();
    assertThat(wire.server.goAwaysReceived()).isZero();
    wire.server.readRows().always(Script.start().rows("new").ok());
    Read again = wire.readOn(1, Long.MAX_VALUE);
    WirePool.await("a new stream", again::isOver);
    assertThat(again.error).isNull();
    assertThat(again.messages).isEqualTo(1);
    assertThat(wire.server.readRows().awaitCall(streams + 1).connection())
        .isEqualTo(connection.id());
    assertThat(connection.isOpen()).isTrue();
  }

  @ParameterizedTest
  @EnumSource(Late.class)
  @DisplayName(
      "BT-21 1,500 streams cancelled by a quarantine while the server goes on sending: the connection lives")
  void quarantine(Late late) {
    Gate silence = new Gate();
    try (WirePool wire = pool(ScriptedBigtable.start())) {
      wire.server.readRows().always(late.before.whenReset(late.late).silence());
      List<Read> reads = open(wire, MANY);
      ScriptedConnection connection = connection(wire);
      wire.server
          .pingAndWarm()
          .answer(
              call ->
                  call.connection() == connection.id() && !silence.isOpen()
                      ? Script.start().silence()
                      : null);
      wire.server.readRows().next(WirePool.steady(Duration.ofSeconds(20)));
      Read other = wire.readOn(2, Long.MAX_VALUE);
      WirePool.await(reads, "the quarantine");
      assertThat(reads)
          .allSatisfy(
              read -> assertThat(read.error).hasCauseInstanceOf(QuarantinedException.class));
      WirePool.await("the resets", () -> connection.resetsReceived() >= MANY);
      silence.open();
      // told when it is in the choice again
      WirePool.await(
          "an answered probe",
          () -> wire.events.stream().anyMatch(event -> event.to() == MemberStatus.HEALTHY));
      lives(wire, connection, MANY + 1);
      other.cancel();
    }
  }

  @ParameterizedTest
  @EnumSource(Late.class)
  @DisplayName(
      "BT-21 1,200 of 1,500 dropped by their callers: the connection lives and the other 300 complete")
  void dropped(Late late) {
    Gate gate = new Gate();
    try (WirePool wire = pool(ScriptedBigtable.start())) {
      wire.server.readRows().always(late.before.whenReset(late.late).hold(gate).rows("last").ok());
      List<Read> reads = open(wire, MANY);
      ScriptedConnection connection = connection(wire);
      reads.subList(0, DROPPED).forEach(Read::cancel);
      WirePool.await("the resets", () -> connection.resetsReceived() >= DROPPED);
      assertThat(wire.pool.inFlight()).isEqualTo(MANY - DROPPED);
      gate.open();
      List<Read> rest = reads.subList(DROPPED, MANY);
      WirePool.await(rest, "the others");
      assertThat(rest).allMatch(read -> read.completed);
      lives(wire, connection, MANY);
    }
  }

  @Test
  @DisplayName(
      "BT-21a a server that limits resets closes the connection: the rest are told so, and a new connection serves")
  void limited() {
    try (WirePool wire = pool(ScriptedBigtable.builder().maxResets(200, 30).start())) {
      wire.server.readRows().always(Script.start().rows("first").silence());
      List<Read> reads = open(wire, 600);
      ScriptedConnection connection = connection(wire);
      reads.subList(0, 400).forEach(Read::cancel);
      WirePool.await(reads.subList(400, 600), "the rest");
      WirePool.await("the connection's end", () -> !connection.isOpen());
      // by its GOAWAY, or by a write that fails first
      assertThat(reads.subList(400, 600))
          .extracting(read -> Status.fromThrowable(requireNonNull(read.error)).getCode())
          .isSubsetOf(Status.Code.RESOURCE_EXHAUSTED, Status.Code.UNAVAILABLE);
      wire.server.readRows().always(Script.start().rows("new").ok());
      Read again = wire.readOn(1, Long.MAX_VALUE);
      WirePool.await("a new connection", again::isOver);
      assertThat(again.error).isNull();
    }
  }

  @Test
  @DisplayName(
      "BT-21a paced, 1,200 of 1,500 dropped: their callers are free at once, the server is told within its limit")
  void paced() {
    Gate gate = new Gate();
    try (WirePool wire =
        pool(
            ScriptedBigtable.builder().maxResets(200, 30).start(),
            pool -> pool.maxCancelsPerInterval(100, Duration.ofSeconds(40)))) {
      wire.server.readRows().always(Script.start().rows("first").hold(gate).rows("last").ok());
      List<Read> reads = open(wire, MANY);
      ScriptedConnection connection = connection(wire);
      reads.forEach(read -> read.awaitMessages(1));
      reads.subList(0, DROPPED).forEach(Read::cancel);
      assertThat(wire.pool.inFlight()).isEqualTo(MANY - DROPPED);
      assertThat(wire.pool.delayedCancels()).isEqualTo(DROPPED - 100);
      WirePool.await("the resets", () -> connection.resetsReceived() == 100);
      gate.open();
      List<Read> rest = reads.subList(DROPPED, MANY);
      WirePool.await(rest, "the others");
      assertThat(rest).allMatch(read -> read.completed && read.messages == 2);
      assertThat(reads.subList(0, DROPPED)).allMatch(read -> read.messages == 1);
      wire.server.awaitOpenStreams(0);
      lives(wire, connection, MANY);
      assertThat(connection.resetsReceived()).isEqualTo(100);
    }
  }

  @Test
  @DisplayName("BT-21a paced, a quarantine fails every caller at once all the same")
  void pacedQuarantine() {
    try (WirePool wire =
        pool(
            ScriptedBigtable.builder().maxResets(200, 30).start(),
            pool -> pool.maxCancelsPerInterval(50, Duration.ofSeconds(1)))) {
      wire.server.readRows().always(Script.start().rows("first").silence());
      List<Read> reads = open(wire, 300);
      ScriptedConnection connection = connection(wire);
      wire.server
          .pingAndWarm()
          .answer(call -> call.connection() == connection.id() ? Script.start().silence() : null);
      wire.server.readRows().next(WirePool.steady(Duration.ofSeconds(20)));
      Read other = wire.readOn(2, Long.MAX_VALUE);
      WirePool.await(reads, "the quarantine");
      assertThat(connection.resetsReceived()).isLessThan(200);
      assertThat(reads)
          .allSatisfy(
              read -> assertThat(read.error).hasCauseInstanceOf(QuarantinedException.class));
      assertThat(wire.pool.inFlight()).isEqualTo(1);
      WirePool.await("the server's turn", () -> connection.resetsReceived() >= 150);
      other.cancel();
    }
  }
}
