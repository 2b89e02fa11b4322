package dev.timebound.bigtable;

import static dev.timebound.bigtable.ChunkStreams.bytes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.protobuf.ByteString;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class ReadProgressTest {

  private static ReadProgress progress(Query.Builder query) {
    return new ReadProgress(query.build().toRequest("projects/p/instances/i/tables/t", "profile"));
  }

  private static Query.Builder query() {
    return Query.builder("t");
  }

  private static void deliver(ReadProgress progress, String... keys) {
    for (String key : keys) {
      progress.received();
      progress.delivered(bytes(key));
    }
  }

  private static ReadRowsRequest next(ReadProgress progress) {
    ReadRowsRequest next = progress.next();
    if (next == null) {
      throw new AssertionError("done, where something is left to read");
    }
    return next;
  }

  private static com.google.bigtable.v2.RowRange range(ReadProgress progress) {
    ReadRowsRequest next = next(progress);
    assertThat(next.getRows().getRowKeysCount()).isZero();
    assertThat(next.getRows().getRowRangesList()).hasSize(1);
    return next.getRows().getRowRanges(0);
  }

  @Nested
  class Resume {
    @Test
    @DisplayName("BT-31 nothing delivered: the same request again, every field of it")
    void fresh() {
      ReadProgress progress = progress(query().prefix("a").limit(3).filter(Filters.latest(1)));
      ReadRowsRequest first = next(progress);
      progress.received();

      assertThat(next(progress)).isEqualTo(first);
      assertThat(progress.resumePoint()).isNull();
    }

    @Test
    @DisplayName("BT-31 everything but the rows stays: filter, table, profile, direction")
    void keepsTheRest() {
      ReadProgress progress = progress(query().filter(Filters.family("f")).reversed(true).limit(9));
      ReadRowsRequest first = next(progress);
      deliver(progress, "m");

      assertThat(next(progress).toBuilder().clearRows().setRowsLimit(9).build()).isEqualTo(first);
    }

    @Test
    @DisplayName("BT-31 after the last row delivered, not the last one received")
    void deliveredNotReceived() {
      ReadProgress progress = progress(query());
      deliver(progress, "a");
      progress.received();
      progress.received();

      assertThat(range(progress).getStartKeyOpen()).isEqualTo(bytes("a"));
      assertThat(progress.deliveredRows()).isEqualTo(1);
    }

    @Test
    @DisplayName("BT-31 a closed start becomes open at the last row; an end stays as it was")
    void cutsRange() {
      ReadProgress closed = progress(query().range(RowRange.closed("a", "z")));
      deliver(closed, "a", "b");
      assertThat(range(closed).getStartKeyOpen()).isEqualTo(bytes("b"));
      assertThat(range(closed).getEndKeyClosed()).isEqualTo(bytes("z"));

      ReadProgress open = progress(query().range(RowRange.open("a", "z")));
      deliver(open, "b");
      assertThat(range(open).getStartKeyOpen()).isEqualTo(bytes("b"));
      assertThat(range(open).getEndKeyOpen()).isEqualTo(bytes("z"));
    }

    @Test
    @DisplayName("BT-31 the END of a reversed scan is what moves; its start stays")
    void reversedEnd() {
      ReadProgress progress = progress(query().range(RowRange.closed("a", "z")).reversed(true));
      deliver(progress, "z", "m");

      assertThat(range(progress).getEndKeyOpen()).isEqualTo(bytes("m"));
      assertThat(range(progress).getStartKeyClosed()).isEqualTo(bytes("a"));
    }

    @Test
    @DisplayName("BT-31 an unbounded reversed scan gets an end")
    void reversedUnbounded() {
      ReadProgress progress = progress(query().reversed(true));
      deliver(progress, "m");

      assertThat(range(progress).getEndKeyOpen()).isEqualTo(bytes("m"));
      assertThat(range(progress).hasStartKeyClosed()).isFalse();
    }

    @Test
    @DisplayName("BT-31 several ranges and keys: what lies behind goes, what lies ahead stays")
    void mixed() {
      ReadProgress progress =
          progress(
              query()
                  .key("b")
                  .key("n")
                  .key("y")
                  .range(RowRange.closedOpen("c", "e"))
                  .range(RowRange.closedOpen("k", "p"))
                  .range(RowRange.after("x")));
      deliver(progress, "b", "d", "n");

      ReadRowsRequest next = next(progress);
      assertThat(next.getRows().getRowKeysList()).containsExactly(bytes("y"));
      assertThat(next.getRows().getRowRangesList())
          .containsExactly(RowRange.open("n", "p").toProto(), RowRange.after("x").toProto());
    }

    @Test
    @DisplayName("BT-31 a delivery that was never received is a fault of the caller")
    void tooMany() {
      ReadProgress progress = progress(query());

      assertThatThrownBy(() -> progress.delivered(bytes("a")))
          .isInstanceOf(IllegalStateException.class);
    }
  }

  @Nested
  class Limit {
    @Test
    @DisplayName("BT-31 what is left of a row limit")
    void reduced() {
      ReadProgress progress = progress(query().limit(5));
      deliver(progress, "a", "b");

      assertThat(next(progress).getRowsLimit()).isEqualTo(3);
      deliver(progress, "c");
      assertThat(next(progress).getRowsLimit()).isEqualTo(2);
    }

    @Test
    @DisplayName("BT-32 the limit reached and then an error: done, no retry")
    void reached() {
      ReadProgress progress = progress(query().limit(2));
      deliver(progress, "a", "b");

      assertThat(progress.next()).isNull();
    }

    @Test
    @DisplayName("BT-31 rows received and not delivered do not count against the limit")
    void receivedOnly() {
      ReadProgress progress = progress(query().limit(2));
      deliver(progress, "a");
      progress.received();

      assertThat(next(progress).getRowsLimit()).isEqualTo(1);
    }

    @Test
    @DisplayName("BT-31 a limit of 0 means all, and stays 0")
    void none() {
      ReadProgress progress = progress(query().limit(0));
      deliver(progress, "a", "b", "c");

      assertThat(next(progress).getRowsLimit()).isZero();
    }
  }

  @Nested
  class Done {
    @Test
    @DisplayName("BT-32 after the last of the keys: done, never a scan of the whole table")
    void lastKey() {
      ReadProgress progress = progress(query().keys(List.of(bytes("b"), bytes("a"))));
      deliver(progress, "a");
      assertThat(next(progress).getRows().getRowKeysList()).containsExactly(bytes("b"));
      deliver(progress, "b");

      assertThat(progress.next()).isNull();
    }

    @Test
    @DisplayName("BT-32 after the closed end of a range, forward and reversed")
    void closedEnd() {
      ReadProgress forward = progress(query().range(RowRange.closed("a", "c")));
      deliver(forward, "c");
      assertThat(forward.next()).isNull();

      ReadProgress reversed = progress(query().range(RowRange.closed("a", "c")).reversed(true));
      deliver(reversed, "a");
      assertThat(reversed.next()).isNull();
    }

    @Test
    @DisplayName("BT-32 where only an impossible range is left, between a key and the next one")
    void adjacent() {
      ByteString a0 = bytes("a\0");
      ReadProgress forward = progress(query().range(RowRange.closedOpen(bytes("a"), a0)));
      deliver(forward, "a");
      assertThat(forward.next()).isNull();

      ReadProgress reversed =
          progress(query().range(RowRange.openClosed(bytes("a"), a0)).reversed(true));
      reversed.received();
      reversed.delivered(a0);
      assertThat(reversed.next()).isNull();
    }

    @Test
    @DisplayName("BT-32 a reversed scan of the whole table after the least key there is")
    void leastKey() {
      ReadProgress progress = progress(query().reversed(true));
      deliver(progress, "\0");

      assertThat(progress.next()).isNull();
    }

    @Test
    @DisplayName("BT-32 a scan marker past the last range: done")
    void marker() {
      ReadProgress progress = progress(query().range("a", "c"));
      progress.scanned(bytes("c"));

      assertThat(progress.next()).isNull();
    }
  }

  @Nested
  class Markers {
    @Test
    @DisplayName("BT-31 a scan marker moves the resume point, and takes nothing from the limit")
    void moves() {
      ReadProgress progress = progress(query().limit(2));
      deliver(progress, "a");
      progress.scanned(bytes("k"));

      assertThat(range(progress).getStartKeyOpen()).isEqualTo(bytes("k"));
      assertThat(next(progress).getRowsLimit()).isEqualTo(1);
      assertThat(progress.resumePoint()).isEqualTo(bytes("k"));
    }

    @Test
    @DisplayName("BT-31 a scan marker moves the END of a reversed scan")
    void reversed() {
      ReadProgress progress = progress(query().range(RowRange.closed("a", "z")).reversed(true));
      progress.scanned(bytes("k"));

      assertThat(range(progress).getEndKeyOpen()).isEqualTo(bytes("k"));
    }

    @Test
    @DisplayName(
        "BT-31 a marker behind a row not yet delivered does not count: the row is read again")
    void undelivered() {
      ReadProgress progress = progress(query());
      deliver(progress, "a");
      progress.received();
      progress.scanned(bytes("k"));

      assertThat(range(progress).getStartKeyOpen()).isEqualTo(bytes("a"));
    }

    @Test
    @DisplayName("BT-31 it counts once the last row before it has been delivered")
    void deliveredLater() {
      ReadProgress progress = progress(query());
      progress.received();
      progress.received();
      progress.scanned(bytes("k"));
      progress.scanned(bytes("l"));
      progress.received();
      progress.scanned(bytes("p"));
      progress.delivered(bytes("a"));
      assertThat(progress.resumePoint()).isEqualTo(bytes("a"));

      progress.delivered(bytes("b"));
      assertThat(progress.resumePoint()).isEqualTo(bytes("l"));

      progress.delivered(bytes("m"));
      assertThat(progress.resumePoint()).isEqualTo(bytes("p"));
    }

    @Test
    @DisplayName("BT-31 a marker of an attempt that was given up does not count in the next one")
    void forgotten() {
      ReadProgress progress = progress(query());
      progress.received();
      progress.scanned(bytes("k"));
      assertThat(next(progress).hasRows()).isFalse();
      progress.received();
      progress.delivered(bytes("a"));

      assertThat(range(progress).getStartKeyOpen()).isEqualTo(bytes("a"));
    }
  }
}
