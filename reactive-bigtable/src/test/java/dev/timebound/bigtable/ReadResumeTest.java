package dev.timebound.bigtable;

import static dev.timebound.bigtable.Scripted.key;
import static dev.timebound.bigtable.Scripted.query;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.RowSet;
import com.google.protobuf.ByteString;
import dev.timebound.test.Rows;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedCall;
import io.grpc.Status;
import io.netty.handler.codec.http2.Http2Error;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("BT-31 BT-32 a read goes on after the last row delivered")
class ReadResumeTest {
  private static final int ROWS = 20;

  /** How a stream may be cut once rows have come. */
  static Stream<Arguments> cuts() {
    return Stream.of(
        cut("UNAVAILABLE", script -> script.status(Status.UNAVAILABLE)),
        cut("RST INTERNAL_ERROR", script -> script.reset(Http2Error.INTERNAL_ERROR)),
        cut("GOAWAY after the headers", script -> script.goAwayRefusing(Http2Error.NO_ERROR)),
        cut("connection reset", Script::resetConnection),
        cut("connection closed", Script::closeConnection),
        cut("silence", Script::silence));
  }

  private static Arguments cut(String name, UnaryOperator<Script> end) {
    return Arguments.of(name, end);
  }

  private static Script reversedRows(int below, int count) {
    Script script = Script.start();
    for (int i = below - 1; i >= below - count; i--) {
      script = script.rows(key(i));
    }
    return script;
  }

  private static RowSet set(ReadRowsRequest request) {
    return request.getRows();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("cuts")
  @DisplayName("BT-31 cut between rows, in the middle of a row, before any: none twice, none lost")
  void cutAnywhere(String name, UnaryOperator<Script> end) {
    try (Scripted reads = Scripted.start()) {
      reads
          .server
          .readRows()
          .next(
              end.apply(Script.start()),
              end.apply(Scripted.rows(Script.start(), 0, 7, 3)),
              // a row that has begun is read again, from its beginning
              end.apply(
                  Scripted.rows(Script.start(), 7, 10, 1).chunks(Rows.begun(key(10), "half"))),
              // rows and the beginning of one in a single message
              end.apply(
                  Script.start()
                      .chunks(
                          Rows.row(key(10), key(10)),
                          Rows.row(key(11), key(11)),
                          Rows.begun(key(12), "half"))))
          .always(Scripted.rows(Script.start(), 12, ROWS, 2).ok());
      assertThat(reads.read().awaitComplete()).containsExactly(Scripted.keys(0, ROWS));
      assertThat(reads.calls().stream().map(Scripted::from)).containsExactly(0, 0, 7, 10, 12);
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("cuts")
  @DisplayName("BT-31 reversed, with a limit: the end of the range moves, the limit shrinks")
  void reversedWithLimit(String name, UnaryOperator<Script> end) {
    try (Scripted reads = Scripted.start()) {
      reads
          .server
          .readRows()
          .next(end.apply(reversedRows(ROWS, 4)), end.apply(reversedRows(ROWS - 4, 3)))
          .always(reversedRows(ROWS - 7, 3).ok());
      List<String> expected = new ArrayList<>(Arrays.asList(Scripted.keys(ROWS - 10, ROWS)));
      Collections.reverse(expected);
      Query.Builder query = query().range(key(0), key(ROWS)).reversed(true).limit(10);
      assertThat(reads.read(query).awaitComplete()).isEqualTo(expected);
      List<ReadRowsRequest> requests = reads.requests();
      assertThat(requests).extracting(ReadRowsRequest::getRowsLimit).containsExactly(10L, 6L, 3L);
      assertThat(requests).allMatch(ReadRowsRequest::getReversed);
      assertThat(set(requests.get(1)).getRowRanges(0).getEndKeyOpen().toStringUtf8())
          .isEqualTo(key(ROWS - 4));
      assertThat(set(requests.get(2)).getRowRanges(0).getEndKeyOpen().toStringUtf8())
          .isEqualTo(key(ROWS - 7));
      assertThat(requests)
          .allMatch(
              request ->
                  set(request).getRowRanges(0).getStartKeyClosed().toStringUtf8().equals(key(0)));
    }
  }

  @Test
  @DisplayName("BT-31 keys mixed with ranges: only what lies past the last row is asked for again")
  void keysAndRanges() {
    try (Scripted reads = Scripted.start()) {
      reads
          .server
          .readRows()
          .next(Script.start().rows(key(1), key(3), key(4)).status(Status.UNAVAILABLE))
          .always(Script.start().rows(key(5), key(9), key(12)).ok());
      Query.Builder query =
          query().key(key(1)).key(key(9)).range(key(3), key(6)).range(key(12), key(14));
      assertThat(reads.read(query).awaitComplete())
          .containsExactly(key(1), key(3), key(4), key(5), key(9), key(12));
      RowSet left = set(reads.requests().get(1));
      assertThat(left.getRowKeysList())
          .extracting(ByteString::toStringUtf8)
          .containsExactly(key(9));
      assertThat(left.getRowRangesCount()).isEqualTo(2);
      assertThat(left.getRowRanges(0).getStartKeyOpen().toStringUtf8()).isEqualTo(key(4));
      assertThat(left.getRowRanges(0).getEndKeyOpen().toStringUtf8()).isEqualTo(key(6));
      assertThat(left.getRowRanges(1).getStartKeyClosed().toStringUtf8()).isEqualTo(key(12));
    }
  }

  @Nested
  @DisplayName("BT-31 rows received and not delivered")
  class NotDelivered {
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 5, 6})
    @DisplayName(
        "BT-31 cut while the caller's demand is used up: it resumes after what was delivered")
    void demandUsedUp(int demand) {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(Scripted.rows(Script.start(), 0, 6, 3).status(Status.UNAVAILABLE))
            .answer(call -> Scripted.rows(Script.start(), Scripted.from(call), ROWS, 4).ok());
        Reader reader = Reader.of(reads.all(), demand);
        reader.awaitRows(demand);
        reads.calls().get(0).awaitEnd(ScriptedCall.End.COMPLETE);
        assertThat(reader.keys()).hasSize(demand);
        reader.request(Long.MAX_VALUE);
        assertThat(reader.awaitComplete()).containsExactly(Scripted.keys(0, ROWS));
      }
    }

    @Test
    @DisplayName("BT-30 BT-31 a row that nobody asks for sends no retry")
    void noDemandNoRetry() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(Script.start().rows(key(0)).status(Status.UNAVAILABLE))
            .always(Script.start().rows(key(1)).ok());
        Reader reader = Reader.of(reads.all(), 1);
        reader.awaitRows(1);
        Scripted.letPass(Scripted.GAP);
        assertThat(reads.calls()).hasSize(1);
        assertThat(reads.client.pool().inFlight()).isZero();
        reader.request(5);
        assertThat(reader.awaitComplete()).containsExactly(key(0), key(1));
      }
    }

    @Test
    @DisplayName("BT-31 rows that were whole before a broken chunk are delivered, then the error")
    void brokenStream() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .always(
                Script.start()
                    .chunks(Rows.row(key(0), "v"), Rows.row(key(1), "v"), Rows.row(key(1), "again"))
                    .silence());
        Reader reader = Reader.of(reads.all(), 1);
        reader.awaitRows(1);
        Scripted.letPass(Scripted.GAP);
        assertThat(reader.isOver()).isFalse();
        reader.request(1);
        assertThat(reader.awaitError()).isInstanceOf(InvalidChunkStreamException.class);
        assertThat(reader.keys()).containsExactly(key(0), key(1));
        assertThat(reads.calls()).hasSize(1);
        reads.calls().get(0).awaitEnd(ScriptedCall.End.RESET_BY_CLIENT);
      }
    }

    static Stream<Arguments> afterTheLimit() {
      return Stream.of(
          Arguments.of(
              "half a row, in its message",
              Script.start().chunks(Rows.row(key(0), "v"), Rows.begun(key(1), "half")).ok()),
          Arguments.of(
              "the row again, in its message",
              Script.start().chunks(Rows.row(key(0), "v"), Rows.row(key(0), "v")).silence()),
          Arguments.of(
              "half a row, in the next",
              Script.start().rows(key(0)).chunks(Rows.begun(key(1), "half")).ok()),
          Arguments.of(
              "the row again, in the next", Script.start().rows(key(0)).rows(key(0)).silence()));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource
    @DisplayName(
        "BT-31 a stream that is broken after the last row asked for is an error all the same")
    void afterTheLimit(String name, Script broken) {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().always(broken);
        Reader reader = reads.read(query().limit(1));
        assertThat(reader.awaitError()).isInstanceOf(InvalidChunkStreamException.class);
        assertThat(reader.keys()).containsExactly(key(0));
        assertThat(reads.calls()).hasSize(1);
      }
    }
  }

  @Nested
  @DisplayName("BT-31 scan markers")
  class Markers {
    @Test
    @DisplayName("BT-31 a marker moves the resume point past the rows before it")
    void moveThePoint() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(
                Script.start().marker(key(100)).status(Status.UNAVAILABLE),
                Script.start().rows(key(101)).marker(key(200)).status(Status.UNAVAILABLE))
            .always(Script.start().rows(key(300)).ok());
        assertThat(reads.read().awaitComplete()).containsExactly(key(101), key(300));
        assertThat(reads.calls().stream().map(Scripted::from)).containsExactly(0, 101, 201);
      }
    }

    @Test
    @DisplayName("BT-31 in a reversed scan a marker moves the END of what is asked for")
    void reversed() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(Script.start().rows(key(300)).marker(key(200)).status(Status.UNAVAILABLE))
            .always(Script.start().rows(key(100)).ok());
        Query.Builder query = query().reversed(true);
        assertThat(reads.read(query).awaitComplete()).containsExactly(key(300), key(100));
        RowSet left = set(reads.requests().get(1));
        assertThat(left.getRowRanges(0).getEndKeyOpen().toStringUtf8()).isEqualTo(key(200));
        assertThat(left.getRowRanges(0).getStartKeyCase())
            .isEqualTo(com.google.bigtable.v2.RowRange.StartKeyCase.STARTKEY_NOT_SET);
      }
    }

    @Test
    @DisplayName("BT-31 a marker behind rows that are not delivered does not overtake them")
    void notBeforeItsRows() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(
                Script.start()
                    .rows(key(0), key(1), key(2))
                    .marker(key(50))
                    .status(Status.UNAVAILABLE))
            .answer(call -> Script.start().rows(key(60)).ok());
        Reader reader = Reader.of(reads.all(), 2);
        reader.awaitRows(2);
        reader.request(Long.MAX_VALUE);
        assertThat(reader.awaitComplete()).containsExactly(key(0), key(1), key(2), key(60));
        assertThat(Scripted.from(reads.calls().get(1))).isEqualTo(51);
      }
    }

    @Test
    @DisplayName("BT-32 a marker at the end of the range ends the read: no retry")
    void markerAtTheEnd() {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .always(Script.start().rows(key(1)).marker(key(9)).status(Status.UNAVAILABLE));
        Query.Builder query = query().range(RowRange.closed(bytes(key(0)), bytes(key(9))));
        assertThat(reads.read(query).awaitComplete()).containsExactly(key(1));
        assertThat(reads.calls()).hasSize(1);
      }
    }
  }

  @Nested
  @DisplayName("BT-32 a read that was delivered whole sends no retry")
  class DeliveredWhole {
    @ParameterizedTest(name = "{0}")
    @MethodSource("dev.timebound.bigtable.ReadResumeTest#cuts")
    @DisplayName("BT-32 after the last key; a scan retried then became one of the whole table")
    void lastKey(String name, UnaryOperator<Script> end) {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().always(end.apply(Script.start().rows(key(1), key(2))));
        assertThat(reads.read(query().key(key(1)).key(key(2))).awaitComplete())
            .containsExactly(key(1), key(2));
        assertThat(reads.calls()).hasSize(1);
      }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("dev.timebound.bigtable.ReadResumeTest#cuts")
    @DisplayName("BT-32 at the row limit: a limit of 0 left would mean all")
    void limitReached(String name, UnaryOperator<Script> end) {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .next(end.apply(Script.start().rows(key(1), key(2))))
            .always(end.apply(Script.start().rows(key(3))));
        assertThat(reads.read(query().limit(3)).awaitComplete())
            .containsExactly(key(1), key(2), key(3));
        assertThat(reads.requests())
            .extracting(ReadRowsRequest::getRowsLimit)
            .containsExactly(3L, 1L);
      }
    }

    @Test
    @DisplayName("BT-32 at the end of the range")
    void endOfRange() {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().always(Script.start().rows(key(9)).status(Status.UNAVAILABLE));
        Query.Builder query = query().range(RowRange.closed(bytes(key(0)), bytes(key(9))));
        assertThat(reads.read(query).awaitComplete()).containsExactly(key(9));
        assertThat(reads.calls()).hasSize(1);
      }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("dev.timebound.bigtable.ReadResumeTest#cuts")
    @DisplayName(
        "BT-32 cut in the middle of a row beyond the limit: no broken stream, and no retry")
    void cutBeyondTheLimit(String name, UnaryOperator<Script> end) {
      try (Scripted reads = Scripted.start()) {
        reads
            .server
            .readRows()
            .always(end.apply(Script.start().rows(key(1)).chunks(Rows.begun(key(2), "half"))));
        assertThat(reads.read(query().limit(1)).awaitComplete()).containsExactly(key(1));
        assertThat(reads.calls()).hasSize(1);
      }
    }

    @Test
    @DisplayName("BT-32 whatever the status says")
    void anyStatus() {
      try (Scripted reads = Scripted.start()) {
        reads.server.readRows().always(Script.start().rows(key(1)).status(Status.NOT_FOUND));
        assertThat(reads.read(query().key(key(1))).awaitComplete()).containsExactly(key(1));
      }
    }
  }

  private static ByteString bytes(String key) {
    return ByteString.copyFromUtf8(key);
  }
}
